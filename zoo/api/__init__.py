"""The zoo from Python: what `zoo.list`, `show`, `validate`, `plan`, `run` and `report` do; `zoo` names them all."""
