"""Many runs: prepared, started in processes of their own, watched, resumed and merged."""
