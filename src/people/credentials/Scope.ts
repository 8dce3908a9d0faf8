/**
 * OAuth scopes. An application requests them, the consent page describes them, and routes require them. A token from a user's own sign-in may do
 * everything.
 *
 * Where the specification is silent:
 * - An application always receives `profile`, `email` and `calls`. It receives `openid` and an ID token if it requests `openid` or no scope at all.
 *   The token contains its sign-in (`sid`) and its scope. A route demands its scope through its security middleware (`people/credentials/Security`).
 *   Notifications, other people's accounts and plans require `organization`, the ledger requires `billing`, and team usage requires `calls`.
 * - Budgets and runs belong to keys. An application that views or ends runs needs `keys`, because a run is created with a key and never with the
 *   application's token. API keys and the keys of runs may access their own runs without a scope.
 */

export const scopes = ["openid", "profile", "email", "calls", "keys", "transfers", "billing", "organization"] as const
export type Scope = (typeof scopes)[number]

/** The scopes that a token grants. `all` means a user's own sign-in, or a trusted client. */
export type Grant = "all" | ReadonlyArray<Scope>

/** The scope that a route requires of a user token. `sign_in` excludes applications. */
export type Demand = Exclude<Scope, "openid" | "email"> | "sign_in"

/** The scopes that every application receives. */
const always: ReadonlySet<Scope> = new Set(["profile", "email", "calls"])

const isScope = (text: string): text is Scope => (scopes as ReadonlyArray<string>).includes(text)

/**
 * Returns the grant for a requested `scope`, or its first unknown word. `offline_access` adds nothing, because every application receives a refresh
 * token.
 */
export const grantOf = (scope: string, trusted: boolean): { readonly grant: Grant } | { readonly unknown: string } => {
  const words = scope.split(" ").filter((word) => word !== "" && word !== "offline_access")
  const unknown = words.find((word) => !isScope(word))
  if (unknown !== undefined) return { unknown }
  if (trusted) return { grant: "all" }
  const wanted = new Set(words.length === 0 ? ["openid"] : words)
  return { grant: scopes.filter((scope) => always.has(scope) || wanted.has(scope)) }
}

export const scopeText = (grant: Grant): string => (grant === "all" ? scopes : grant).join(" ")

export const toRow = (grant: Grant): string => (grant === "all" ? "all" : grant.join(" "))
export const fromRow = (row: string): Grant => (row === "all" ? "all" : row.split(" ").filter(isScope))

export const includes = (grant: Grant, scope: Scope): boolean => grant === "all" || grant.includes(scope)

/** Describes the grant to the user. Each string completes the sentence "If you allow it, it can ...". */
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
      "create, list, change and delete API keys and their limits; view and end the runs of your keys; a key that it creates keeps working after its own access has ended"
    ]
  },
  {
    scope: "transfers",
    words: ["send your credit to other users, and accept, decline or take back transfers"]
  },
  {
    scope: "billing",
    words: [
      "read your ledger; change your billing settings, your payment methods, auto-reload and the payer of your calls; buy credit with a stored payment method"
    ]
  },
  {
    scope: "organization",
    words: ["view and change your teams, including their members, invitations and plans; read your notifications"]
  }
]
