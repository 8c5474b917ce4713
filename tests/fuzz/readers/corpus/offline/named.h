const int32_t plan[] = {
	1, 0, 3, /* head */
	-1,  // x
	0,  // a
	64  // y
};
