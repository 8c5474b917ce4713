/* Are the facts right that passes say they kept?  For builds with --enable-checked. */
#include <config.h>

#include "host/host.h"

om_status
om_facts_check(om_host *h, om_prog *p)
{
	(void)h;
	(void)p;
	return OM_OK;
}
