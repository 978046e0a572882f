// The binding library, compiled into the module: it is not needed at run time.
#include "nb_combined.cpp"
