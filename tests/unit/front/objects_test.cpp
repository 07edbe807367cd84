// From handles to objects as the short forms take them: what is noted, and what never becomes an object.
#include <gtest/gtest.h>

#ifdef FRONT_OPENMPI
#include "front/abi/openmpi_objects.h"
#else
#include "front/abi/mpich_objects.h"
#endif

namespace fermata::abi {
namespace {

using front::Object;
using front::registry;

template <Kind kind>
Object* dynamic(uint32_t index) {
    return object_of<kind>(out_Datatype(static_cast<Datatype>(dynamic_word(kind, index))));
}

TEST(Objects, PredefinedAreNotedWhenTheyAreMet) {
    static Object type(Kind::datatype), comm(Kind::comm);
    const A_Datatype integer = out_Datatype(FM_INT);
    const A_Comm world = out_Comm(FM_COMM_WORLD);
    meet<Kind::datatype>(integer);  // no such object yet
    EXPECT_EQ(object_of<Kind::datatype>(integer), nullptr);
    registry.predefined[word_of(FM_INT)] = &type;
    registry.predefined[word_of(FM_COMM_WORLD)] = &comm;
    EXPECT_EQ(object_of<Kind::datatype>(integer), nullptr);
    meet<Kind::datatype>(integer);
    meet<Kind::comm>(world);
    EXPECT_EQ(object_of<Kind::datatype>(integer), &type);
    EXPECT_EQ(object_of<Kind::comm>(world), &comm);
    EXPECT_EQ(object_of<Kind::datatype>(out_Datatype(FM_CHAR)), nullptr);
    EXPECT_EQ(object_of<Kind::datatype>(out_Datatype(FM_DATATYPE_NULL)), nullptr);
#ifdef FRONT_OPENMPI  // one map for each kind elsewhere
    EXPECT_EQ(object_of<Kind::op>(integer), nullptr);
    meet<Kind::op>(integer);
    EXPECT_EQ(object_of<Kind::datatype>(integer), &type);
#endif
}

TEST(Objects, DynamicOnesAreLookedUpEachTime) {
    static Object type(Kind::datatype);
    static Object* slots[kFirstIndex + 2] = {};
    auto& table = registry.tables[static_cast<uint32_t>(Kind::datatype)];
    table.slots = slots;
    table.capacity = kFirstIndex + 2;
    const A_Datatype handle = out_Datatype(static_cast<Datatype>(dynamic_word(Kind::datatype, kFirstIndex)));
    EXPECT_EQ(object_of<Kind::datatype>(handle), nullptr);
    slots[kFirstIndex] = &type;
    EXPECT_EQ(object_of<Kind::datatype>(handle), &type);
    EXPECT_EQ(object_of<Kind::comm>(handle), nullptr);
    meet<Kind::datatype>(handle);
    slots[kFirstIndex] = nullptr;  // freed
    EXPECT_EQ(object_of<Kind::datatype>(handle), nullptr);
    EXPECT_EQ(dynamic<Kind::datatype>(kFirstIndex + 1), nullptr);
    EXPECT_EQ(dynamic<Kind::datatype>(kFirstIndex + 2), nullptr);
    EXPECT_EQ(dynamic<Kind::comm>(kFirstIndex), nullptr);
}

TEST(Objects, GarbageIsNone) {
    for (int word : {0, 1, 5, 4095}) {
        meet<Kind::datatype>(static_cast<A_Datatype>(word));
        EXPECT_EQ(object_of<Kind::datatype>(static_cast<A_Datatype>(word)), nullptr) << word;
        EXPECT_EQ(object_of<Kind::comm>(static_cast<A_Comm>(word)), nullptr) << word;
    }
}

}  // namespace
}  // namespace fermata::abi
