// CMake tells this file the version, and no other, so that a new one compiles one file.
#include "base/version.h"

namespace fermata {

const char* const kVersion = FERMATA_VERSION;

}  // namespace fermata
