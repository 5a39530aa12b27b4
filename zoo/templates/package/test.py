"""What any $slot must do, held by the zoo's own checks."""

from zoo.testing import check_variant


def test_${identifier}():
    check_variant("$slot", "$name")
