"""What the client suites stand on: processes, brokers, toolchains, and the judgement of what was seen."""
