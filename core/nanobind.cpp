// The binding library, compiled into the module: nothing of it is needed at run time.
#include "nb_combined.cpp"
