/* SPDX-License-Identifier: MIT */
/* Code with more values than registers that calls do not change: a compiler takes the frame pointer, unless it must not. */
long other(long a, long b, long c, long d, long e, long f);

long work(long *p, long n)
{
	long s = 0, t = 1, u = 2, v = 3, w = 4;

	for (long i = 0; i < n; i++) {
		s += p[i];
		t *= p[i];
		u ^= other(s, t, u, v, w, i);
		v += u;
		w -= v;
	}
	return s + t + u + v + w;
}

long twice(long a)
{
	return other(a, a, a, a, a, a) * 2;
}
