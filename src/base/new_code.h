// Whether memory may become code here: both halves have libraries' code changed in memory.
#pragma once

#include <string>

namespace fermata {

// Tries it on pages of its own. "" = yes, or the one line that says why not (SELinux's execmem and execmod,
// PR_SET_MDWE).
std::string why_no_new_code();

}  // namespace fermata
