"""Parameters as nests of dictionaries, lists and records: to one vector and back."""

from poem_cma.parameters.nest import Structure as Structure
