// The context of the core library, which is not linked here: no lower half, errors go to stderr.
#include "front/core/front.h"

fermata::split::UpperServices fermata_upper;
namespace fermata::front {
Front front;
}
