"""The configuration keys of Nacos, and the profile and options of a node that they are turned into.

`registry.py` is the table of keys, `ignored.py` names keys of a full server that configure nothing here,
`properties.py` reads `application.properties`, and `configured.py` turns keys and values into a profile and options.
Source: docs/protocol #settings-keys.
"""

from distro_impl.settings.configured import Configured, configured
from distro_impl.settings.errors import SettingError
from distro_impl.settings.registry import SETTINGS, Setting

__all__ = [
    "SETTINGS",
    "Configured",
    "Setting",
    "SettingError",
    "configured",
]
