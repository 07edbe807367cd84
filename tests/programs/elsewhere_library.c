int next_of(int value) { return value * 7 + 3; }
