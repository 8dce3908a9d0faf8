/**
 * What an application may do in somebody's name. A scope is what it asks for, what the person reads on the consent page, and what a
 * route demands of a token. A sign-in's own token may do everything.
 *
 * Where the specification is silent:
 * - An application always gets `profile`, `email` and `calls`, whatever it asks for; `openid` (which brings an ID token) if it asks for that
 *   or for nothing. The token names its sign-in (`sid`) and its scope. Which scope a route demands is part of its credential
 *   (`people/credentials/Security`). Notifications, other people's accounts and plans are `organization`, the ledger is `billing`, team usage is `calls`.
 */

export const scopes = ["openid", "profile", "email", "calls", "keys", "transfers", "billing", "organization"] as const
export type Scope = (typeof scopes)[number]

/** What a token may do. */
export type Grant = "all" | ReadonlyArray<Scope>

/** What a route demands of a user token: a scope, or that no application holds it. */
export type Demand = Exclude<Scope, "openid" | "email"> | "sign_in"

/** What every application gets: who the person is, calls, and reading what they cost. */
const always: ReadonlySet<Scope> = new Set(["profile", "email", "calls"])

const isScope = (text: string): text is Scope => (scopes as ReadonlyArray<string>).includes(text)

/**
 * What an application gets that asks for this `scope`; or the first word of it that is no scope. Refresh tokens are given in any
 * case, so `offline_access`, by which client libraries ask for them, adds nothing.
 */
export const grantOf = (scope: string, trusted: boolean): { readonly grant: Grant } | { readonly unknown: string } => {
  const words = scope.split(" ").filter((word) => word !== "" && word !== "offline_access")
  const unknown = words.find((word) => !isScope(word))
  if (unknown !== undefined) return { unknown }
  if (trusted) return { grant: "all" }
  const wanted = new Set(words.length === 0 ? ["openid"] : words)
  return { grant: scopes.filter((scope) => always.has(scope) || wanted.has(scope)) }
}

/** As token responses say it. */
export const scopeText = (grant: Grant): string => (grant === "all" ? scopes : grant).join(" ")

/** As the database keeps it. */
export const toRow = (grant: Grant): string => (grant === "all" ? "all" : grant.join(" "))
export const fromRow = (row: string): Grant => (row === "all" ? "all" : row.split(" ").filter(isScope))

export const includes = (grant: Grant, scope: Scope): boolean => grant === "all" || grant.includes(scope)

/** What the person reads, a sentence's end for each: "If you allow it, it can: ...". */
export const described = (grant: Grant): ReadonlyArray<string> =>
  descriptions.flatMap(({ scope, words }) => (includes(grant, scope) ? words : []))

const descriptions: ReadonlyArray<{ readonly scope: Scope; readonly words: ReadonlyArray<string> }> = [
  { scope: "profile", words: ["see your name, your email address and the teams that you belong to"] },
  {
    scope: "calls",
    words: ["make calls that are charged to your teams and to you", "read your usage and your balance"]
  },
  {
    scope: "keys",
    words: [
      "create, list, rename and delete API keys; a key that it creates keeps working after its own access has ended"
    ]
  },
  {
    scope: "transfers",
    words: ["send your credit to other people, and accept, decline or take back transfers"]
  },
  {
    scope: "billing",
    words: [
      "read your ledger, change your billing settings, payment methods, auto-reload and who pays for your calls, and buy credit with a stored payment method"
    ]
  },
  {
    scope: "organization",
    words: ["see and change your teams: members, invitations and plans; read your notifications"]
  }
]
