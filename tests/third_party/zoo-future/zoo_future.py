"""Written for a contract that this zoo does not have yet."""

import zoo

zoo_api = zoo.API + 1


@zoo.hookimpl
def zoo_variants():
    raise RuntimeError("must not be called")
