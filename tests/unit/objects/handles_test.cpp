#include <gtest/gtest.h>

#include "front/objects/group.h"
#include "front/objects/info.h"
#include "front/objects/registry.h"

namespace fermata::front {
namespace {

TEST(Handles, CarryKindAndIndex) {
    GroupObject group;
    uint32_t handle = give_handle(&group);
    EXPECT_TRUE(is_dynamic(handle));
    EXPECT_EQ(mpi::kind_of(handle), Kind::group);
    EXPECT_GE(index_of(handle), mpi::kFirstIndex);
    EXPECT_EQ(find_group(handle), &group);
    EXPECT_EQ(find_object(handle, Kind::info), nullptr);
    take_handle(&group);
    EXPECT_EQ(find_group(handle), nullptr);
    EXPECT_EQ(group.handle, 0u);
}

TEST(Handles, GarbageIsNoObject) {
    for (uint32_t word : {0u, 1u, 4095u, 0x7fffffffu, 0x80000000u, 0x88000000u, 0x8bffffffu, 0xffffffffu})
        for (uint32_t kind = 1; kind <= 12; kind++)
            EXPECT_EQ(find_object(word, static_cast<Kind>(kind)), nullptr);
}

TEST(Handles, CyclesDoNotGrow) {
    auto cycle = [] {
        auto* group = fm_new<GroupObject>();
        group->members.assign(100, Rank(1));
        give_handle(group);
        take_handle(group);
        fm_delete(group);
    };
    cycle();
    HeapUse before = fm_heap_use();
    uint32_t top = registry.tables[static_cast<uint32_t>(Kind::group)].top;
    for (int i = 0; i < 10000; i++) cycle();
    HeapUse after = fm_heap_use();
    EXPECT_EQ(after.mapped, before.mapped);
    EXPECT_EQ(after.blocks, before.blocks);
    EXPECT_EQ(registry.tables[static_cast<uint32_t>(Kind::group)].top, top);
    EXPECT_EQ(live_handles(Kind::group), 0u);
}

TEST(Handles, ManyLiveOnesSurviveGrowth) {
    Vec<InfoObject*> list;
    for (int i = 0; i < 5000; i++) {
        list.push_back(fm_new<InfoObject>());
        give_handle(list.back());
    }
    EXPECT_EQ(live_handles(Kind::info), 5000u);
    for (InfoObject* info : list) EXPECT_EQ(find_info(info->handle), info);
    for (InfoObject* info : list) {
        take_handle(info);
        fm_delete(info);
    }
    EXPECT_EQ(live_handles(Kind::info), 0u);
}

}  // namespace
}  // namespace fermata::front
