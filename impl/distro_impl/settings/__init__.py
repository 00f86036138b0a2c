"""Nacos' own configuration keys: which there are, how a file of them is read, and what comes of them.

`registry.py` is the table of keys, `ignored.py` names those of a full server that have nothing to configure here,
`properties.py` reads `application.properties`, which most nodes have none of, `configured.py` turns pairs of key and
text into a profile and options.
Source: docs/protocol #settings-keys.
"""

from distro_impl.settings.configured import Configured, configured, with_settings
from distro_impl.settings.errors import SettingError, UnknownSettingError
from distro_impl.settings.registry import SETTINGS, Setting

__all__ = [
    "SETTINGS",
    "Configured",
    "Setting",
    "SettingError",
    "UnknownSettingError",
    "configured",
    "with_settings",
]
