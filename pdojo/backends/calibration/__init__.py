"""Measurements of this processor's arithmetic peak and bandwidth."""
