"""The game as an environment for learning agents (paper section 3.1): episodes, offered actions, rewards.

`episode.Episode` is plain Python; `pdojo.env` offers the same game for gymnasium, and exports all names.
"""
