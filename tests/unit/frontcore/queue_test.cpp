#include "front/requests/queue.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

#include "front/core/heap.h"

using namespace fermata::front;

namespace {

QueuedMessage* message(uint64_t comm, int source, int tag, int64_t bytes = 0) {
    return MessageQueue::make(comm, source, tag, bytes);
}

}  // namespace

TEST(MessageQueue, MatchesInOrderOfArrival) {
    MessageQueue queue;
    queue.push(message(1, 0, 7, 10));
    queue.push(message(1, 0, 7, 20));
    queue.push(message(1, 0, 8, 30));
    QueuedMessage* m = queue.take(1, 0, 8);
    ASSERT_NE(m, nullptr);
    EXPECT_EQ(m->bytes, 30);
    MessageQueue::destroy(m);
    m = queue.take(1, 0, kAny);
    EXPECT_EQ(m->bytes, 10);
    MessageQueue::destroy(m);
    m = queue.take(1, kAny, 7);
    EXPECT_EQ(m->bytes, 20);
    MessageQueue::destroy(m);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.take(1, kAny, kAny), nullptr);
}

TEST(MessageQueue, ProbeLeavesTheMessage) {
    MessageQueue queue;
    queue.push(message(1, 3, 4, 5));
    EXPECT_EQ(queue.find(1, kAny, 4), queue.find(1, 3, kAny));
    EXPECT_EQ(queue.find(2, kAny, kAny), nullptr);
    EXPECT_EQ(queue.find(1, 2, kAny), nullptr);
    EXPECT_EQ(queue.size(), 1u);
    EXPECT_EQ(queue.purge(2), 0u);
    EXPECT_EQ(queue.purge(1), 1u);
    EXPECT_TRUE(queue.empty());
}

// Negative tags and sources are ordinary values here: only kAny is a wildcard.
TEST(MessageQueue, WildcardIsNoOrdinaryValue) {
    MessageQueue queue;
    queue.push(message(1, 0, 5));
    EXPECT_EQ(queue.find(1, -1, 5), nullptr);
    EXPECT_EQ(queue.find(1, 0, -2), nullptr);
    queue.purge(1);
}

TEST(MessageQueue, BehavesAsAListThatIsSearchedFromTheFront) {
    std::mt19937 random(11);
    MessageQueue queue;
    std::list<QueuedMessage*> model;
    for (int step = 0; step < 20000; step++) {
        if (random() % 2 == 0) {
            auto* m = message(random() % 3, static_cast<int>(random() % 4), static_cast<int>(random() % 4),
                              static_cast<int64_t>(random() % 40));
            queue.push(m);
            model.push_back(m);
            continue;
        }
        uint64_t comm = random() % 3;
        int source = random() % 3 == 0 ? kAny : static_cast<int>(random() % 4);
        int tag = random() % 3 == 0 ? kAny : static_cast<int>(random() % 4);
        QueuedMessage* expected = nullptr;
        for (auto it = model.begin(); it != model.end(); ++it) {
            QueuedMessage* m = *it;
            if (m->comm != comm || (source != kAny && m->source != source) || (tag != kAny && m->tag != tag))
                continue;
            expected = m;
            model.erase(it);
            break;
        }
        EXPECT_EQ(queue.find(comm, source, tag), expected);
        QueuedMessage* got = queue.take(comm, source, tag);
        ASSERT_EQ(got, expected);
        ASSERT_EQ(queue.size(), model.size());
        if (got != nullptr) MessageQueue::destroy(got);
    }
    for (uint64_t comm = 0; comm < 3; comm++) queue.purge(comm);
    EXPECT_TRUE(queue.empty());
}
