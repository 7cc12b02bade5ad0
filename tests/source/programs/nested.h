static inline __attribute__((always_inline)) int innermost(const int *p)
{
	return *p + 3;
}
