// Error classes and codes of the program's.
#include "front/objects/error_codes.h"

#include <gtest/gtest.h>

namespace fermata::front {
namespace {

TEST(ErrorCodes, NothingGoesThatIsInUse) {
    const int error_class = add_error_class();
    int code = 0;
    ASSERT_TRUE(add_error_code(error_class, &code));
    ASSERT_TRUE(set_error_text(code, "a text"));
    EXPECT_FALSE(remove_error_code(code, true)) << "it is no class";
    EXPECT_FALSE(remove_error_code(code, false)) << "it has a text";
    EXPECT_FALSE(remove_error_code(error_class, true)) << "it has a code";
    EXPECT_TRUE(set_error_text(code, ""));
    EXPECT_TRUE(remove_error_code(code, false));
    EXPECT_FALSE(remove_error_code(code, false)) << "it is gone";
    ASSERT_TRUE(set_error_text(error_class, "a text"));
    EXPECT_FALSE(remove_error_code(error_class, true));
    EXPECT_TRUE(set_error_text(error_class, ""));
    EXPECT_TRUE(remove_error_code(error_class, true));
    EXPECT_FALSE(error_code_is_known(error_class));
    EXPECT_FALSE(remove_error_code(0, true)) << "it is not the program's";
}

}  // namespace
}  // namespace fermata::front
