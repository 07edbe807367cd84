// The version of this Fermata, as CMakeLists.txt's project() says it: `fermata --version`, packages,
// manifests.
#pragma once

namespace fermata {

extern const char* const kVersion;

}  // namespace fermata
