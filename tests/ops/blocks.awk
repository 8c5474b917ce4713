# SPDX-License-Identifier: Apache-2.0
# Block `want` of C in a page.
/^```c$/ { n++; inside = 1; next }
/^```/ { inside = 0 }
inside && n == want
