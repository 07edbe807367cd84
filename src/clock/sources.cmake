# The rank side of the clock, for its own library and for the front, which compiles it in.
set(FERMATA_CLOCK_RANK_SOURCES)
foreach(name rank_clock gates waits needs rank_messages diagnosis comms outbox messages)
    list(APPEND FERMATA_CLOCK_RANK_SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
endforeach()
