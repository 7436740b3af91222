"""Parts of the fuzzer (`qa.fuzz`)."""
