/** An issuer with an independent implementation: `oidc-provider` on the loopback interface, with its own sign-in and consent pages. */
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto"
import { createServer } from "node:http"
import type { Server } from "node:http"
import { Provider } from "oidc-provider"
import { fieldsOf, text } from "./OAuth.ts"
import type { Browser } from "./OAuth.ts"

export const client = { id: "tollgate", secret: "the-secret-of-tollgate" }
/** Another application at the same issuer. */
export const otherClient = {
  id: "another-application",
  secret: "the-secret-of-another",
  redirect_uri: "http://127.0.0.1:9/back"
}

export interface Person {
  readonly email: string
  readonly email_verified?: boolean
  readonly name: string
  readonly groups?: ReadonlyArray<string>
}

const asForm = { "content-type": "application/x-www-form-urlencoded" }

const basic = ({ id, secret }: { readonly id: string; readonly secret: string }) =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`

export class OidcProvider {
  readonly url: string
  /** The users by login name. */
  readonly people = new Map<string, Person>()
  readonly #port: number
  readonly #server: Server

  constructor(port: number, redirect_uri: string) {
    this.url = `http://127.0.0.1:${port}`
    this.#port = port
    const provider = new Provider(this.url, {
      clients: [
        { client_id: client.id, client_secret: client.secret, redirect_uris: [redirect_uri] },
        {
          client_id: otherClient.id,
          client_secret: otherClient.secret,
          redirect_uris: [otherClient.redirect_uri]
        }
      ],
      claims: {
        openid: ["sub"],
        email: ["email", "email_verified"],
        profile: ["name"],
        groups: ["groups"]
      },
      jwks: { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] },
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      pkce: { methods: ["S256"], required: () => true },
      cookies: { keys: [randomBytes(16).toString("hex")] },
      findAccount: (_: unknown, login: string) => {
        const person = this.people.get(login)
        return person === undefined
          ? undefined
          : { accountId: login, claims: () => ({ sub: login, email_verified: true, ...person }) }
      }
    })
    this.#server = createServer(provider.callback())
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve))
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  /** Signs a user in on the provider's pages, starting at the authorization URL. Returns the URL to which the provider redirects the browser. */
  async through(browser: Browser, url: string, login: string): Promise<string> {
    let page = await browser.open(url)
    for (;;) {
      if (page.location !== undefined && !page.location.startsWith(this.url)) return page.location
      if (page.location !== undefined) {
        page = await browser.open(page.location)
        continue
      }
      const action = /<form[^>]* action="([^"]+)"/.exec(page.html)?.[1]
      if (action === undefined) throw new Error(`${this.url} answered ${page.status}: ${page.html.slice(0, 500)}`)
      page = await browser.open(text(action), { ...fieldsOf(page.html), login, password: "any" })
    }
  }

  /** Gets an ID token for this user that the provider issues to the other application. */
  async tokenForAnother(browser: Browser, login: string): Promise<string> {
    const verifier = randomBytes(32).toString("base64url")
    const { id, redirect_uri } = otherClient
    const query = new URLSearchParams({
      client_id: id,
      redirect_uri,
      response_type: "code",
      scope: "openid email",
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256"
    })
    const back = new URL(await this.through(browser, `${this.url}/auth?${query}`, login))
    const code = back.searchParams.get("code") ?? ""
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri,
      code_verifier: verifier
    })
    const answer = await fetch(`${this.url}/token`, {
      method: "POST",
      headers: { ...asForm, authorization: basic(otherClient) },
      body: form
    })
    const { id_token } = (await answer.json()) as { readonly id_token: string }
    return id_token
  }
}
