"""Test modules are imported without their directory (import mode `importlib`): it is added for shared modules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
