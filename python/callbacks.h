/* SPDX-License-Identifier: MIT */
/*
 * Part of the declarations of fathom._fathom (build_ffi.py): functions that the library calls, and
 * what their data points to. They need no GIL but to ask Python.
 */

/* In Python: they are called with the GIL, on the thread that has called the library. */
extern "Python" int fathom_python_progress(void *, const struct fathom_progress *);
extern "Python" int fathom_python_is_done(void *);

/* Asks fathom_python_progress(), at most ten times a second. */
int python_progress(void *data, const struct fathom_progress *p);

/* A file that the library writes. */
struct python_output {
	int fd;
	int has_begun;    /* something was written: what the file had is gone */
	int64_t asked_ns; /* when fathom_python_is_done() was asked last */
	void *asked;      /* what it takes */
};

/* Takes bytes of a file: fathom_profile_write_fn. */
int python_write(void *data, const void *bytes, size_t n);

/* Asks fathom_python_is_done(), at most ten times a second; @data is a struct python_output. */
int python_is_done(void *data);

/* Room for the samples of a profile. */
struct python_samples {
	struct fathom_profile_sample *items;
	size_t n;
	size_t room;
};

/* Takes a sample, as long as there is room: fathom_profile_sample_fn. */
int python_take_sample(void *data, const struct fathom_profile_sample *sample);
