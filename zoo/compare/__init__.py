"""What is compared and what makes that fair: rows, designs, matching, tuning, halving."""
