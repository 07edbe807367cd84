# The message log's rank side, for its own library and for the front, which will compile it in.
set(FERMATA_REPLAY_SOURCES)
foreach(name starts telling following receipts spilling recovery channels requests collective told_set exchange wire_form record_form)
    list(APPEND FERMATA_REPLAY_SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
endforeach()
