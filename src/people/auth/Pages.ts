/** The HTML of the OAuth pages. The pages use no scripts and no external styles. */

const escape = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem; color: #222; }
button, .button, input { font: inherit; padding: .6rem 1.2rem; margin: .5rem .5rem .5rem 0; border: 1px solid #444; border-radius: .4rem;
  background: #fff; color: #222; text-decoration: none; display: inline-block; cursor: pointer; }
button.yes { background: #124; color: #fff; }
.small { color: #555; font-size: .9rem; }
</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`

const hidden = (fields: Readonly<Record<string, string | undefined>>): string =>
  Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<input type="hidden" name="${escape(name)}" value="${escape(value ?? "")}">`)
    .join("\n")

/** Renders the page with a button for each identity provider. */
export const signIn = (options: {
  readonly service: string
  /** The application's name; `undefined` in the device flow, where the application is not yet known. */
  readonly client: string | undefined
  readonly providers: ReadonlyArray<{ readonly name: string; readonly url: string }>
}): string =>
  page(
    `Sign in to ${options.service}`,
    `<h1>Sign in to ${escape(options.service)}</h1>
<p>${options.client === undefined ? "A device" : `<strong>${escape(options.client)}</strong>`} would like to use your account. Sign in first; the next page asks you before anything is
shared.</p>
${options.providers.map(({ name, url }) => `<a class="button" href="${escape(url)}">Continue with ${escape(name)}</a>`).join("\n")}`
  )

export const consent = (options: {
  readonly service: string
  readonly client: string
  readonly person: string
  /** The permissions. Each string completes the sentence "it can ...". */
  readonly allows: ReadonlyArray<string>
  readonly trusted: boolean
  readonly warning?: string
  /** A sentence about the next step. */
  readonly then: string
  /** The URL that the form is posted to. */
  readonly action: string
  readonly fields: Readonly<Record<string, string | undefined>>
}): string =>
  page(
    `${options.client} asks for access`,
    `<h1>${escape(options.client)} asks for access</h1>
<p>It wants to use ${escape(options.service)} as <strong>${escape(options.person)}</strong>. If you allow it, it can ${
      options.trusted
        ? `do everything that you can do when you sign in to ${escape(options.service)} yourself:`
        : "only:"
    }</p>
<ul>
${options.allows.map((words) => `<li>${escape(words)}</li>`).join("\n")}
</ul>${
      options.warning === undefined
        ? ""
        : `
<p><strong>${escape(options.warning)}</strong></p>`
    }
<form method="post" action="${escape(options.action)}">
${hidden(options.fields)}
<button class="yes" name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Do not allow</button>
</form>
<p class="small">${escape(options.then)} Signing out of the application ends its access.</p>`
  )

export const deviceCode = (options: {
  readonly service: string
  readonly action: string
  /** The entered user code, if no device is waiting for it. */
  readonly unknown?: string
}): string =>
  page(
    "Connect a device",
    `<h1>Connect a device to ${escape(options.service)}</h1>${
      options.unknown === undefined
        ? ""
        : `
<p role="alert">No device is waiting for the code ${escape(options.unknown)}. It may have expired. Start again on the device.</p>`
    }
<form method="get" action="${escape(options.action)}">
<p><label for="user_code">The code that your device or command line shows:</label></p>
<p><input id="user_code" name="user_code" required autofocus autocomplete="off" autocapitalize="characters" spellcheck="false"
  maxlength="20" placeholder="XXXX-XXXX"></p>
<button class="yes">Continue</button>
</form>`
  )

export const linkForm = (options: {
  readonly service: string
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  /** The entered text, if it is not an email address. */
  readonly unusable?: string
}): string =>
  page(
    `Sign in to ${options.service}`,
    `<h1>Sign in to ${escape(options.service)}</h1>${
      options.unusable === undefined
        ? ""
        : `
<p role="alert">${escape(options.unusable)} is not an email address.</p>`
    }
<form method="post" action="${escape(options.action)}">
${hidden(options.fields)}
<p><label for="email">Your email address. We will send you a link that signs you in, so you do not need a password.</label></p>
<p><input id="email" name="email" type="email" required autofocus autocomplete="email" maxlength="254"></p>
<button class="yes">Send the link</button>
</form>`
  )

/** Renders the page after `linkForm`, regardless of whether a link was sent. */
export const linkSent = (options: { readonly service: string; readonly email: string }): string =>
  page(
    "Check your email",
    `<h1>Check your email</h1>
<p>If <strong>${escape(options.email)}</strong> may sign in to ${escape(options.service)}, an email with a link is on its way. Open the link in this
browser within 15 minutes. It works only once.</p>`
  )

/** Renders the last page of the device flow. */
export const decided = (allowed: boolean): string =>
  page(
    allowed ? "Connected" : "Not allowed",
    allowed
      ? `<h1>Connected</h1>
<p>Your device continues automatically. You can close this page.</p>`
      : `<h1>Not allowed</h1>
<p>The device has no access. You can close this page.</p>`
  )

/** Renders the page for a failure that the user cannot fix. */
export const wrong = (text: string): string =>
  page(
    "Something went wrong",
    `<h1>Something went wrong</h1>\n<p>${escape(text)}</p>\n<p>Go back to the application and try again.</p>`
  )
