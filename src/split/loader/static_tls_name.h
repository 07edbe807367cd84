// The variable that static_tls.h makes, and by which the auditor knows it again. No libc.
#pragma once

namespace fermata::split {

inline constexpr char kStaticTlsVariable[] = "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=";

}  // namespace fermata::split
