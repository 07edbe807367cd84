// Between the files of this room only.
#pragma once

#include "front/objects/comm.h"
#include "front/objects/datatype.h"
#include "front/objects/file.h"
#include "front/objects/op.h"
#include "front/objects/win.h"

namespace fermata::front {

// Real objects from descriptions: used at creation and at restart.
int op_make_real(OpObject* op) noexcept;
int type_make_real(TypeObject* type) noexcept;

OpObject* first_op() noexcept;
TypeObject* first_type() noexcept;  // oldest derived type
WinObject* first_win() noexcept;
FileObject* first_file() noexcept;

// The real -> virtual table of datatypes.
void type_note_real(TypeObject* type) noexcept;
void type_forget_real(TypeObject* type) noexcept;
void types_forget_all_real() noexcept;

// Real handles of predefined objects, from the lower half that is there now.
void predefined_refresh(bool first_time) noexcept;

}  // namespace fermata::front
