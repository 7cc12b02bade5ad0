#include "cache.h"
void fathom_cache_open(struct fathom_module *m)
{
	(void)m;
}
void fathom_cache_close(struct fathom_module *m)
{
	(void)m;
}
#include "fathom/cache.h"
fathom_err fathom_cache_store(struct fathom_target *t, bool all, uint32_t d,
			      struct fathom_cache_result *r, struct fathom_errinfo *e)
{
	(void)t;
	(void)all;
	(void)d;
	(void)r;
	(void)e;
	return FATHOM_E_UNSUPPORTED;
}
uint64_t fathom_cache_cost_ms(const struct fathom_target *t)
{
	(void)t;
	return 0;
}
fathom_err fathom_cache_clear(struct fathom *s, uint64_t *r, struct fathom_errinfo *e)
{
	(void)s;
	(void)r;
	(void)e;
	return 0;
}
const char *fathom_cache_dir(const struct fathom *s)
{
	(void)s;
	return 0;
}
