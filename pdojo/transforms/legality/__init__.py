"""Decisions about moves: is a move legal in a program, and does the program after it keep all conditions?"""
