/** An OpenID Connect issuer with the code flow, and a fake of GitHub's OAuth. It checks PKCE and the client secret, and accepts a code once. */
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import type { JWTPayload } from "jose"
import { createHash, randomBytes } from "node:crypto"
import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export const client = { id: "toll gate", secret: "s3cret:%" }

interface Asked {
  readonly challenge: string
  readonly redirect_uri: string
  readonly nonce: string | null
}

const encoded = (text: string) => new URLSearchParams({ v: text }).toString().slice(2)
const basic = `Basic ${Buffer.from(`${encoded(client.id)}:${encoded(client.secret)}`).toString("base64")}`

export class CodeIssuer {
  /** The claims of the user whom the sign-in page signs in. */
  claims: JWTPayload = { sub: "ada", email: "ada@corp.example", email_verified: true, name: "Ada" }
  /** Claims that only the userinfo endpoint returns. */
  more: JWTPayload = {}
  /** Replaces claims in the ID token to make it invalid. */
  spoiled: JWTPayload = {}
  /** The email addresses that GitHub reports. */
  emails: ReadonlyArray<object> = []
  /** The user whom GitHub signs in. */
  user: object = { id: 42, login: "octocat", name: null }
  /** Whether the sign-in page shows a link back instead of redirecting. */
  asks = false
  /** If set, the sign-in page sends every browser back with this error. */
  refusal: string | undefined
  readonly port: number
  readonly url: string
  readonly #codes = new Map<string, Asked>()
  readonly #key
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  private constructor(port: number, key: Awaited<ReturnType<typeof generateKeyPair>>) {
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    this.#key = key
  }

  static async make(port: number): Promise<CodeIssuer> {
    return new CodeIssuer(port, await generateKeyPair("ES256"))
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve))
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  static async freePort(): Promise<number> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    return port
  }

  async sign(claims: JWTPayload): Promise<string> {
    const iat = Math.floor(Date.now() / 1000)
    const all = { iss: this.url, aud: client.id, iat, exp: iat + 600, ...claims }
    return new SignJWT(all).setProtectedHeader({ alg: "ES256", kid: "k" }).sign(this.#key.privateKey)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "", this.url)
    const body = new URLSearchParams(await new Response(request as unknown as ReadableStream).text())
    const json = (status: number, value: unknown) => {
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(value))
    }
    switch (pathname) {
      case "/.well-known/openid-configuration":
        return json(200, {
          issuer: this.url,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          userinfo_endpoint: `${this.url}/userinfo`,
          jwks_uri: `${this.url}/keys`
        })
      case "/keys":
        return json(200, { keys: [{ ...(await exportJWK(this.#key.publicKey)), kid: "k", alg: "ES256" }] })
      case "/authorize":
      case "/login/oauth/authorize":
        return this.#authorize(searchParams, response)
      case "/token":
        return this.#token(body, request.headers.authorization === basic, json)
      case "/login/oauth/access_token":
        return this.#spend(body, body.get("client_secret") === client.secret) === undefined
          ? json(200, { error: "bad_verification_code" })
          : json(200, { access_token: "gho_1", token_type: "bearer" })
      case "/user":
        return json(200, this.user)
      case "/user/emails":
        return json(200, this.emails)
      case "/userinfo":
        return json(200, { sub: this.claims.sub, ...this.more })
      default:
        return json(404, {})
    }
  }

  #authorize(query: URLSearchParams, response: ServerResponse): void {
    const code = randomBytes(8).toString("hex")
    const redirect_uri = query.get("redirect_uri") ?? ""
    this.#codes.set(code, { challenge: query.get("code_challenge") ?? "", redirect_uri, nonce: query.get("nonce") })
    const back = new URL(redirect_uri)
    if (this.refusal === undefined) back.searchParams.set("code", code)
    else back.searchParams.set("error", this.refusal)
    back.searchParams.set("state", query.get("state") ?? "")
    if (this.asks) {
      response.writeHead(200, { "content-type": "text/html" })
      response.end(`<a href="${back.href.replaceAll("&", "&amp;")}">Go back</a>`)
      return
    }
    response.writeHead(302, { location: back.href })
    response.end()
  }

  /** Redeems a code. Each code works once. */
  #spend(form: URLSearchParams, known: boolean): Asked | undefined {
    const code = form.get("code") ?? ""
    const asked = this.#codes.get(code)
    this.#codes.delete(code)
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url")
    const fits = asked?.challenge === challenge && asked.redirect_uri === form.get("redirect_uri")
    return known && fits ? asked : undefined
  }

  async #token(form: URLSearchParams, known: boolean, json: (status: number, value: unknown) => void): Promise<void> {
    const asked = this.#spend(form, known)
    if (asked === undefined) return json(400, { error: "invalid_grant" })
    const id_token = await this.sign({ ...this.claims, nonce: asked.nonce, ...this.spoiled })
    return json(200, { id_token, access_token: "opaque", token_type: "Bearer" })
  }
}
