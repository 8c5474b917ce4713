/* SPDX-License-Identifier: Apache-2.0 */
/* The domain of collectives. */
#ifndef OM_DIST_DOMAIN_H
#define OM_DIST_DOMAIN_H

#define OM_DIST_DOMAIN "org.onnxmem.dist"
/* The attribute of a collective that is only started: a Wait ends it. */
#define OM_ATTR_ASYNC "async"

#endif
