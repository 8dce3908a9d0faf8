/** What the deployment calls itself: the name in its texts and the prefix of its keys. */
import { Context } from "effect"

export class Brand extends Context.Reference<Brand>()("tollgate/Brand", {
  defaultValue: () => ({ service_name: "Tollgate", key_prefix: "svc" })
}) {}
