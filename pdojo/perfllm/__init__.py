"""PerfLLM (paper section 3): Q-learning over programs, with each action a step from one program to another."""
