// Marks functions of the lower half that upper threads run through the Bridge.
//
// They have no TLS (no stack protector either), and the stop handler knows their addresses: a thread inside
// of them is not captured, for a restart could not return there.
#pragma once

#define FERMATA_NO_TLS __attribute__((no_stack_protector))
#define FERMATA_BRIDGE_TEXT __attribute__((section("fermata_bridge_text"), noinline)) FERMATA_NO_TLS
