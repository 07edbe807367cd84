// What the short forms in the fronts use of the core, without any object: they all give up, so that the tests
// see what the fronts hand to the core.
#include "front/core/short_collective.h"

namespace fermata::front {

constinit Object no_object(Kind::none);
constinit Registry registry;
constinit Front front{};
int stop_at_exit() noexcept { return 0; }
int ShortEntry::class_of(int rc) noexcept { return rc; }
int ShortEntry::fail(const split::ThreadRecord*, const CommObject*, int rc) noexcept { return rc; }
int ShortCollective::failed(split::ThreadRecord*, clock::Comm&, int rc) noexcept { return rc; }
int ShortCollective::leave_pending(split::ThreadRecord*, clock::Comm&) noexcept { return 0; }

}  // namespace fermata::front
