/** The OpenID Connect claims about a user. */
import { Effect } from "effect"
import type { TenantsContract } from "../tenants/Tenants.ts"
import type { AuthorizationContract } from "./Authorization.ts"

export const userInfoBy = (tenants: TenantsContract): AuthorizationContract["userInfo"] =>
  Effect.fnUntraced(function* (account) {
    const [person] = yield* tenants.named([account])
    const { email = "", name = "" } = person ?? {}
    return { sub: account, name, email, email_verified: (yield* tenants.verifiedEmail(account)) === email }
  })
