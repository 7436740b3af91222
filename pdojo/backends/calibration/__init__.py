"""What this processor reaches: arithmetic peak and bandwidth, measured."""
