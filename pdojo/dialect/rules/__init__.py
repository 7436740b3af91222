"""Rules of legality: races, capacity, lanes, threads, streams, tensor units, hints."""
