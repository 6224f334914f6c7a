"""Type aliases."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]

# What a field of a saved record may hold, where it is not what a plain number or array may be; see `run.fields`.

Size: TypeAlias = float  # a number from 0 up, perhaps infinite
Unknown: TypeAlias = float  # a number from 0 up, or NaN where it is not known
Value: TypeAlias = float  # a value of F, or NaN where there is none
Mark: TypeAlias = int  # a whole number, or -1 where there is none
Points: TypeAlias = Array  # rows of finite numbers, one for each variable
Series: TypeAlias = Array  # finite numbers of any shape
Partial: TypeAlias = Array  # numbers of any shape, NaN where they are not known
