// Sizes and basic elements of datatypes (MPI_Get_count, MPI_Get_elements, MPI_Type_get_envelope).
#include <gtest/gtest.h>

#include "front/objects/datatype.h"

namespace fermata::front {
namespace {

using namespace mpi;

TypeObject basic(int64_t size) {
    TypeObject type;
    type.combiner = FM_COMBINER_NAMED;
    type.size = type.extent = size;
    type.elements = 1;
    return type;
}

TypeObject derived(int combiner, Vec<int64_t> ints, Vec<int64_t> aints, Vec<TypeObject*> children) {
    TypeObject type;
    type.combiner = combiner;
    type.ints = ints;
    type.aints = aints;
    type.types = children;
    type_count(&type);
    return type;
}

struct Types : testing::Test {
    TypeObject c = basic(1), i = basic(4), d = basic(8);
};

TEST_F(Types, SizesOfConstructors) {
    EXPECT_EQ(derived(FM_COMBINER_CONTIGUOUS, {5}, {}, {&i}).size, 20);
    EXPECT_EQ(derived(FM_COMBINER_VECTOR, {3, 2, 7}, {}, {&d}).size, 48);
    EXPECT_EQ(derived(FM_COMBINER_HVECTOR, {3, 2}, {100}, {&d}).elements, 6);
    EXPECT_EQ(derived(FM_COMBINER_INDEXED, {2, 3, 4, 0, 10}, {}, {&i}).size, 28);
    EXPECT_EQ(derived(FM_COMBINER_HINDEXED, {2, 3, 4}, {0, 99}, {&i}).elements, 7);
    EXPECT_EQ(derived(FM_COMBINER_INDEXED_BLOCK, {2, 3, 0, 10}, {}, {&i}).size, 24);
    EXPECT_EQ(derived(FM_COMBINER_HINDEXED_BLOCK, {2, 3}, {0, 10}, {&i}).size, 24);
    EXPECT_EQ(derived(FM_COMBINER_STRUCT, {2, 1, 3}, {0, 8}, {&c, &d}).size, 25);
    EXPECT_EQ(derived(FM_COMBINER_SUBARRAY, {2, 9, 9, 2, 3, 0, 0, FM_ORDER_C}, {}, {&d}).size, 48);
    EXPECT_EQ(derived(FM_COMBINER_RESIZED, {}, {0, 64}, {&d}).size, 8);
    EXPECT_EQ(derived(FM_COMBINER_DUP, {}, {}, {&d}).elements, 1);
}

TEST_F(Types, ElementsOfAPartlyReceivedStruct) {
    // {char, 3 doubles}: bytes 1, 8, 8, 8.
    TypeObject type = derived(FM_COMBINER_STRUCT, {2, 1, 3}, {0, 8}, {&c, &d});
    EXPECT_EQ(type_elements_in(type, 0), 0);
    EXPECT_EQ(type_elements_in(type, 1), 1);
    EXPECT_EQ(type_elements_in(type, 9), 2);
    EXPECT_EQ(type_elements_in(type, 10), -1);  // ends inside a double
    EXPECT_EQ(type_elements_in(type, 25), 4);
    EXPECT_EQ(type_elements_in(type, 25 + 17), 7);
    for (int64_t n : {0, 1, 2, 3, 4, 5, 9}) EXPECT_EQ(type_elements_in(type, type_bytes_of(type, n)), n);
}

TEST_F(Types, PairsAreTwoElements) {
    TypeObject pair = basic(12);
    pair.elements = 2;
    pair.first = 8;
    EXPECT_EQ(type_elements_in(pair, 8), 1);
    EXPECT_EQ(type_elements_in(pair, 12), 2);
    EXPECT_EQ(type_elements_in(pair, 4), -1);
    EXPECT_EQ(type_bytes_of(pair, 3), 20);
}

TEST_F(Types, EmptyTypes) {
    TypeObject type = derived(FM_COMBINER_CONTIGUOUS, {0}, {}, {&i});
    EXPECT_EQ(type.size, 0);
    EXPECT_EQ(type_elements_in(type, 0), 0);
    EXPECT_EQ(type_elements_in(type, 4), -1);
    EXPECT_EQ(type_bytes_of(type, 7), 0);
}

TEST_F(Types, Envelopes) {
    Envelope named = type_envelope(i);
    EXPECT_EQ(named.integers + named.addresses + named.types, 0);
    TypeObject type = derived(FM_COMBINER_STRUCT, {2, 1, 3}, {0, 8}, {&c, &d});
    Envelope envelope = type_envelope(type);
    EXPECT_EQ(envelope.integers, 3);
    EXPECT_EQ(envelope.addresses, 2);
    EXPECT_EQ(envelope.counts, 0);
    EXPECT_EQ(envelope.types, 2);
    type.large = true;
    envelope = type_envelope(type);
    EXPECT_EQ(envelope.integers, 0);
    EXPECT_EQ(envelope.addresses, 0);
    EXPECT_EQ(envelope.counts, 5);
}

}  // namespace
}  // namespace fermata::front
