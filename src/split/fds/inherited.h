// The launcher's 0, 1 and 2, kept as duplicates, so that kcmp can tell which of the program's descriptors are
// still one of them.
#pragma once

namespace fermata::split {

// Makes the duplicates, of those that have none yet.
void keep_inherited_descriptors();
// Goes on with the duplicate that this process's first lower half made.
void resume_inherited_descriptor(int number, int duplicate);
// Returns the duplicate of 0, 1 or 2; -1 = it was closed.
int inherited_descriptor(int number);

// Moves a descriptor to a number >= base (closing `fd`). -1 = none left.
int raised(int fd, int base);
// Tells whether two numbers are of one open file description (kcmp; without it, by inode and offset).
bool same_description(int a, int b);

}  // namespace fermata::split
