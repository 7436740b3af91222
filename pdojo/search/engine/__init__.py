"""The search loop: proposals are made, evaluated, raced and stored."""
