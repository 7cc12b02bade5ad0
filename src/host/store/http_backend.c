/* SPDX-License-Identifier: MIT */
/*
 * A store on an HTTP server (RFC 9110): GET with ranges and PUT, by libcurl, which is opened at run
 * time and never linked. Servers that know no ranges are read whole. Each request has the time that
 * is left of its call, so servers that are slow or redirect in circles end it in time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "host/base/clock.h"
#include "host/base/context.h"
#include "host/base/library.h"
#include "host/file/file.h"
#include "host/store/backend.h"

#define SONAME "libcurl.so.4"

/* libcurl's interface (libcurl-easy(3)); its numbers never change. */
struct curl;
struct list;
struct library {
	struct curl *(*init)(void);
	int (*setopt)(struct curl *c, int option, ...);
	int (*perform)(struct curl *c);
	int (*getinfo)(struct curl *c, int info, ...);
	void (*reset)(struct curl *c);
	void (*cleanup)(struct curl *c);
	struct list *(*append)(struct list *l, const char *text);
	void (*free_all)(struct list *l);
};

static const struct fathom_library_symbol symbols[] = {
	{ "curl_easy_init", offsetof(struct library, init) },
	{ "curl_easy_setopt", offsetof(struct library, setopt) },
	{ "curl_easy_perform", offsetof(struct library, perform) },
	{ "curl_easy_getinfo", offsetof(struct library, getinfo) },
	{ "curl_easy_reset", offsetof(struct library, reset) },
	{ "curl_easy_cleanup", offsetof(struct library, cleanup) },
	{ "curl_slist_append", offsetof(struct library, append) },
	{ "curl_slist_free_all", offsetof(struct library, free_all) },
};

enum {
	OPT_NOPROGRESS = 43,
	OPT_UPLOAD = 46,
	OPT_FOLLOWLOCATION = 52,
	OPT_MAXREDIRS = 68,
	OPT_NOSIGNAL = 99,
	OPT_TIMEOUT_MS = 155,
	OPT_PROTOCOLS = 181,
	OPT_REDIR_PROTOCOLS = 182,
	OPT_WRITEDATA = 10001,
	OPT_URL = 10002,
	OPT_RANGE = 10007,
	OPT_READDATA = 10009,
	OPT_USERAGENT = 10018,
	OPT_HTTPHEADER = 10023,
	OPT_HEADERDATA = 10029,
	OPT_SEEKDATA = 10168,
	OPT_WRITEFUNCTION = 20011,
	OPT_READFUNCTION = 20012,
	OPT_HEADERFUNCTION = 20079,
	OPT_SEEKFUNCTION = 20167,
	OPT_INFILESIZE_LARGE = 30115,
	INFO_RESPONSE_CODE = 0x200002,
	HTTP_AND_HTTPS = 3,
};

/* Errors of libcurl that say more than that it failed. */
enum { CURL_PARTIAL = 18, CURL_WRITE_ERROR = 23, CURL_TIMEOUT = 28, CURL_REDIRECTS = 47 };

#define MOST_REDIRECTS 5

/* How often a PUT is tried, while others write. */
#define TRIES 4

/* Bytes of an entity tag that are kept. */
#define TAG 128

struct http {
	struct fathom_store_backend b; /* first */
	struct library l;
	pthread_mutex_t lock; /* of the handle, whose connection is kept */
	struct curl *handle;
};

/* A request, and what comes back. */
struct request {
	struct http *http;
	const char *key;
	uint64_t skip; /* bytes of the body before the wanted ones: of a server without ranges */
	uint64_t off;  /* of the wanted ones */
	uint8_t *to;
	size_t size;
	size_t n;
	bool is_full; /* the server has sent more than was wanted, and was left */
	bool was_begun;
	struct fathom_bytes body; /* of a PUT */
	uint64_t n_sent;
	char tag[TAG];
};

static long status_of(const struct http *h)
{
	long status = 0;

	(void)h->l.getinfo(h->handle, INFO_RESPONSE_CODE, &status);
	return status;
}

/* Takes a part of the body. */
static size_t take_body(char *data, size_t size, size_t n, void *user)
{
	struct request *r = user;
	size_t left = size * n;

	if (!r->was_begun) {
		const long status = status_of(r->http);

		r->was_begun = true;
		r->skip = status == 200 ? r->off : 0;
		if (status == 200)
			atomic_store(&r->http->b.has_no_ranges, true);
	}
	if (r->skip >= left) {
		r->skip -= left;
		return size * n;
	}
	data += r->skip;
	left -= (size_t)r->skip;
	r->skip = 0;
	r->is_full = left > r->size - r->n;
	left = r->is_full ? r->size - r->n : left;
	memcpy(r->to + r->n, data, left);
	r->n += left;
	return r->is_full ? 0 : size * n;
}

/* Drops the body of an answer that has nothing to say. */
static size_t drop_body(char *data, size_t size, size_t n, void *user)
{
	(void)data;
	(void)user;
	return size * n;
}

/* Takes the entity tag, if this is it. */
static size_t take_header(char *data, size_t size, size_t n, void *user)
{
	static const char name[] = "etag:";
	struct request *r = user;
	size_t left = size * n;

	if (left > sizeof name - 1 && strncasecmp(data, name, sizeof name - 1) == 0) {
		data += sizeof name - 1;
		left -= sizeof name - 1;
		while (left && (*data == ' ' || *data == '\t'))
			data++, left--;
		while (left && (data[left - 1] == '\n' || data[left - 1] == '\r'))
			left--;
		if (left < sizeof r->tag && !memchr(data, '\0', left)) {
			memcpy(r->tag, data, left);
			r->tag[left] = '\0';
		}
	}
	return size * n;
}

/* Gives a part of the body of a PUT. */
static size_t give_body(char *to, size_t size, size_t n, void *user)
{
	struct request *r = user;
	const uint64_t left = r->body.size - r->n_sent;
	const size_t now = left < size * n ? (size_t)left : size * n;

	memcpy(to, r->body.data + r->n_sent, now);
	r->n_sent += now;
	return now;
}

/* Begins the body of a PUT again, after a redirection. */
static int seek_body(void *user, int64_t off, int origin)
{
	struct request *r = user;

	if (origin != SEEK_SET || off < 0 || (uint64_t)off > r->body.size)
		return 1;
	r->n_sent = (uint64_t)off;
	return 0;
}

static fathom_err fail(const struct request *r, fathom_err err, const char *what,
		       struct fathom_errinfo *reterr)
{
	return fathom_store_fail(&r->http->b, r->key, err, what, reterr);
}

/* Says what @result, of libcurl, means. */
static fathom_err fail_by_result(const struct request *r, int result, struct fathom_errinfo *reterr)
{
	switch (result) {
	case CURL_TIMEOUT:
		return fail(r, FATHOM_E_TIMEOUT, "the store did not answer in time", reterr);
	case CURL_PARTIAL:
		return fail(r, FATHOM_E_CORRUPT, "the store's answer ends early", reterr);
	case CURL_REDIRECTS:
		return fail(r, FATHOM_E_OS, "the store redirects in a circle", reterr);
	default:
		return fail(r, FATHOM_E_OS, "the store cannot be reached", reterr);
	}
}

/* Says what an answer with @status means that is none of those that are wanted. */
static fathom_err fail_by_status(const struct request *r, long status,
				 struct fathom_errinfo *reterr)
{
	if (status == 404 || status == 410)
		return fail(r, FATHOM_E_NOT_FOUND, "the store has no index of this build", reterr);
	if (status == 401 || status == 403) {
		(void)fail(r, FATHOM_E_OS, "the store refuses this (HTTP 401 or 403)", reterr);
		if (reterr)
			reterr->os_errno = EACCES;
		return FATHOM_E_OS;
	}
	if (status == 405 || status == 501)
		return fail(r, FATHOM_E_OS, "the store takes no PUT (HTTP 405 or 501)", reterr);
	if (status >= 500)
		return fail(r, FATHOM_E_OS, "the store has failed (HTTP 5xx)", reterr);
	return fail(r, FATHOM_E_OS, "the store answers with an HTTP status that means nothing here",
		    reterr);
}

/* Prepares the handle, whose lock is held, for a request to @url. */
static void prepare(struct request *r, const char *url, int64_t deadline_ns)
{
	struct http *h = r->http;
	const int64_t ms = (deadline_ns - fathom_now_ns()) / 1000000;

	h->l.reset(h->handle);
	(void)h->l.setopt(h->handle, OPT_URL, url);
	(void)h->l.setopt(h->handle, OPT_NOSIGNAL, 1L);
	(void)h->l.setopt(h->handle, OPT_NOPROGRESS, 1L);
	(void)h->l.setopt(h->handle, OPT_FOLLOWLOCATION, 1L);
	(void)h->l.setopt(h->handle, OPT_MAXREDIRS, (long)MOST_REDIRECTS);
	(void)h->l.setopt(h->handle, OPT_PROTOCOLS, (long)HTTP_AND_HTTPS);
	(void)h->l.setopt(h->handle, OPT_REDIR_PROTOCOLS, (long)HTTP_AND_HTTPS);
	(void)h->l.setopt(h->handle, OPT_TIMEOUT_MS, (long)(ms < 1 ? 1 : ms));
	(void)h->l.setopt(h->handle, OPT_USERAGENT, "fathom");
	(void)h->l.setopt(h->handle, OPT_WRITEFUNCTION, take_body);
	(void)h->l.setopt(h->handle, OPT_WRITEDATA, r);
	(void)h->l.setopt(h->handle, OPT_HEADERFUNCTION, take_header);
	(void)h->l.setopt(h->handle, OPT_HEADERDATA, r);
}

/* Performs the request; returns libcurl's result, and the status in *@ret_status. */
static int perform(struct request *r, long *ret_status)
{
	const int result = r->http->l.perform(r->http->handle);

	*ret_status = status_of(r->http);
	return result == CURL_WRITE_ERROR && r->is_full ? 0 : result;
}

/* Makes the URL of @key; NULL without memory. */
static char *url_of(const struct fathom_store_backend *b, const char *key)
{
	const size_t size = strlen(b->place);
	char *url;

	return asprintf(&url, "%s%s%s", b->place, b->place[size - 1] == '/' ? "" : "/", key) < 0
		       ? NULL
		       : url;
}

/* Gets what @r wants. */
static fathom_err get(struct request *r, int64_t deadline_ns, struct fathom_errinfo *reterr)
{
	struct http *h = r->http;
	char *url = url_of(&h->b, r->key);
	char range[48];
	long status = 0;
	int result;

	if (!url)
		return fathom_fail_memory(reterr);
	(void)snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)r->off,
		       (unsigned long long)(r->off + r->size - 1));
	(void)pthread_mutex_lock(&h->lock);
	if (fathom_now_ns() >= deadline_ns) {
		result = CURL_TIMEOUT;
	} else {
		prepare(r, url, deadline_ns);
		(void)h->l.setopt(h->handle, OPT_RANGE, range);
		result = perform(r, &status);
	}
	(void)pthread_mutex_unlock(&h->lock);
	free(url);
	if (result)
		return fail_by_result(r, result, reterr);
	if (status == 416) {
		r->n = 0;
		return FATHOM_OK;
	}
	return status == 200 || status == 206 ? FATHOM_OK : fail_by_status(r, status, reterr);
}

static fathom_err read_bytes(struct fathom_store_backend *b, const char *key, uint64_t off,
			     void *to, size_t size, int64_t deadline_ns, size_t *ret_size,
			     struct fathom_errinfo *reterr)
{
	struct request r = {
		.http = (struct http *)b, .key = key, .off = off, .to = to, .size = size
	};

	FATHOM_TRY(get(&r, deadline_ns, reterr));
	*ret_size = r.n;
	return FATHOM_OK;
}

/* Puts the body of @r, if the file there still has its tag, or there is still none. */
static fathom_err send_body(struct request *r, bool is_there, int64_t deadline_ns, long *ret_status,
			    struct fathom_errinfo *reterr)
{
	struct http *h = r->http;
	char *url = url_of(&h->b, r->key);
	char match[TAG + 16] = "If-None-Match: *";
	struct list *headers = h->l.append(NULL, "Expect:");
	int result;

	if (is_there)
		(void)snprintf(match, sizeof match, "If-Match: %s", r->tag);
	if (headers && (!is_there || *r->tag))
		headers = h->l.append(headers, match);
	if (!url || !headers) {
		free(url);
		return fathom_fail_memory(reterr);
	}
	r->n_sent = 0;
	(void)pthread_mutex_lock(&h->lock);
	prepare(r, url, deadline_ns);
	(void)h->l.setopt(h->handle, OPT_UPLOAD, 1L);
	(void)h->l.setopt(h->handle, OPT_HTTPHEADER, headers);
	(void)h->l.setopt(h->handle, OPT_READFUNCTION, give_body);
	(void)h->l.setopt(h->handle, OPT_READDATA, r);
	(void)h->l.setopt(h->handle, OPT_SEEKFUNCTION, seek_body);
	(void)h->l.setopt(h->handle, OPT_SEEKDATA, r);
	(void)h->l.setopt(h->handle, OPT_INFILESIZE_LARGE, (int64_t)r->body.size);
	(void)h->l.setopt(h->handle, OPT_WRITEFUNCTION, drop_body);
	result = perform(r, ret_status);
	/* It has pointers to what ends here. */
	h->l.reset(h->handle);
	(void)pthread_mutex_unlock(&h->lock);
	h->l.free_all(headers);
	free(url);
	return result ? fail_by_result(r, result, reterr) : FATHOM_OK;
}

/* Reads the header that is there, and its tag. */
static fathom_err look(struct request *r, int64_t deadline_ns, struct fathom_container_header *ret,
		       bool *ret_is_there, bool *ret_is_sound, struct fathom_errinfo *reterr)
{
	struct fathom_container_header now;
	fathom_err err;

	r->to = (uint8_t *)&now;
	r->size = sizeof now;
	r->n = 0;
	r->was_begun = false;
	*r->tag = '\0';
	err = get(r, deadline_ns, reterr);
	*ret_is_there = !err;
	*ret_is_sound = !err && !fathom_container_read_header(
					(struct fathom_bytes){ (const void *)&now, r->n },
					(struct fathom_bytes){ NULL, 0 }, ret, NULL);
	return err == FATHOM_E_NOT_FOUND ? FATHOM_OK : err;
}

static fathom_err put(struct fathom_store_backend *b, const char *key, struct fathom_bytes bytes,
		      const struct fathom_container_header *h, int64_t deadline_ns,
		      bool *ret_stored, struct fathom_errinfo *reterr)
{
	struct request r = { .http = (struct http *)b, .key = key, .body = bytes };
	long status = 412;

	*ret_stored = false;
	for (int i = 0; i < TRIES && status == 412; i++) {
		struct fathom_container_header now;
		bool is_there;
		bool is_sound;

		FATHOM_TRY(look(&r, deadline_ns, &now, &is_there, &is_sound, reterr));
		if (is_sound && fathom_container_compare(&now, h) >= 0)
			return FATHOM_OK;
		FATHOM_TRY(send_body(&r, is_there, deadline_ns, &status, reterr));
	}
	if (status < 200 || status > 299)
		return fail_by_status(&r, status, reterr);
	*ret_stored = true;
	return FATHOM_OK;
}

static void close_http(struct fathom_store_backend *b)
{
	struct http *h = (struct http *)b;

	if (h->handle)
		h->l.cleanup(h->handle);
	(void)pthread_mutex_destroy(&h->lock);
	free(b->place);
	free(b);
}

static const struct fathom_store_backend_ops http_ops = {
	.read = read_bytes,
	.put = put,
	.close = close_http,
};

/* Refuses what a URL may not have. */
static fathom_err check_url(const char *url, struct fathom_errinfo *reterr)
{
	for (const char *c = url; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '#' || *c == '?')
			return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
					   "the URL of a store has no blanks, '?' and '#'");
	return FATHOM_OK;
}

fathom_err fathom_store_http_open(struct fathom *session, const char *place,
				  struct fathom_store_backend **ret, struct fathom_errinfo *reterr)
{
	struct http *h;

	if (fathom_is_secure())
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "no server is asked by a program that has more rights than its "
				   "user");
	FATHOM_TRY(check_url(place, reterr));
	h = calloc(1, sizeof *h);
	if (!h)
		return fathom_fail_memory(reterr);
	(void)pthread_mutex_init(&h->lock, NULL);
	h->b.ops = &http_ops;
	h->b.session = session;
	h->b.is_remote = true;
	h->b.place = strdup(place);
	if (!fathom_library_open(SONAME, symbols, sizeof symbols / sizeof *symbols, &h->l)) {
		close_http(&h->b);
		(void)fathom_fail_by(reterr, FATHOM_E_UNSUPPORTED, FATHOM_CAUSE_NOT_INSTALLED,
				     SONAME " is not installed");
		fathom_errinfo_set_file(reterr, SONAME);
		return FATHOM_E_UNSUPPORTED;
	}
	h->handle = h->l.init();
	if (!h->handle || !h->b.place) {
		close_http(&h->b);
		return fathom_fail_memory(reterr);
	}
	*ret = &h->b;
	return FATHOM_OK;
}
