/**
 * The contract as types, made from its OpenAPI document by `npx vitest run test/package.test.ts -u`: not written by hand.
 * `Usd` is an amount with all its digits: a number where that holds them, else a text. Read it with `nano` of `money.ts`.
 */
export interface paths {
    "/v1/auth/google": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign in with google; the first time makes an account and its home tenant */
        post: operations["auth.google"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/microsoft": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign in with microsoft; the first time makes an account and its home tenant */
        post: operations["auth.microsoft"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A new pair of tokens for a refresh token, which is spent */
        post: operations["auth.refresh"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/google/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A new pair of tokens for a refresh token, which is spent */
        post: operations["auth.refreshGoogle"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/microsoft/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A new pair of tokens for a refresh token, which is spent */
        post: operations["auth.refreshMicrosoft"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the sign-in that a refresh token belongs to */
        post: operations["auth.revoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The public keys of access tokens */
        get: operations["auth.keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/oauth/request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Whether an application's request is in order, for a consent page */
        post: operations["oauth.request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/oauth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tokens for a code, a device's code or a refresh token; JSON or form */
        post: operations["oauth.token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/oauth/device": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Codes for an application without a browser (RFC 8628); JSON or form */
        post: operations["oauth.device"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/oauth/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the sign-in that an application's token follows from (RFC 7009); a token that is none is answered alike */
        post: operations["oauth.revokeToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/openid-configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where everything is, for client libraries */
        get: operations["oauth.discovery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/oauth-authorization-server": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The same by the name of RFC 8414 */
        get: operations["oauth.authorizationServer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/oauth/code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A code for what the person consents to; good for a minute, once */
        post: operations["consent.code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/oauth/userinfo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who the person of an access token is (OpenID Connect) */
        get: operations["userinfo.userinfo"];
        put?: never;
        /** The same by POST */
        post: operations["userinfo.userinfoPosted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/authorize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The page on which a person signs in and decides; an application opens it in a browser with the parameters of OAuth 2.0 */
        get: operations["browser.authorize"];
        put?: never;
        /** The form of that page: the decision */
        post: operations["browser.decide"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/device": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The page on which a person types the code that a device shows, and decides */
        get: operations["browser.device"];
        put?: never;
        /** The form of that page: the decision */
        post: operations["browser.decideDevice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/signed-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Where the identity provider sends the browser back to */
        post: operations["browser.signedIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/continue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The same browser after that, with its cookie */
        get: operations["browser.resume"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The providers by which a person may sign in to the console */
        get: operations["console.providers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/sign-in/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Leads a browser to the provider, and back to the console with a session */
        get: operations["console.signIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** An access token for the session that the browser's cookie holds (the console's own page) */
        post: operations["console.openSession"];
        /** End the session, and with it its access tokens (the console's own page) */
        delete: operations["console.endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who I am: my account, the identity behind it, and what became of the signup credit */
        get: operations["tenants.me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/memberships": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenants that I belong to, my home tenant first */
        get: operations["tenants.memberships"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/accounts/{account_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** My account, or that of somebody with whom I share a tenant */
        get: operations["tenants.account"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/applications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The API keys of the tenant, newest first, without the keys themselves; a member sees their own */
        get: operations["tenants.listApplications"];
        put?: never;
        /** Make an API key; it is shown in this answer only */
        post: operations["tenants.createApplication"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/applications/{application_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One API key's record */
        get: operations["tenants.application"];
        put?: never;
        post?: never;
        /** Revoke an API key of one's own, or any as owner or admin */
        delete: operations["tenants.deleteApplication"];
        options?: never;
        head?: never;
        /** Rename or redescribe an API key of one's own, or any as owner or admin */
        patch: operations["tenants.changeApplication"];
        trace?: never;
    };
    "/v1/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a tenant to share; it starts without credit */
        post: operations["organisations.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who belongs to the tenant */
        get: operations["organisations.members"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/members/{account_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a member (owner or admin), or leave */
        delete: operations["organisations.removeMember"];
        options?: never;
        head?: never;
        /** Change a member's role, suspend or reinstate them (owner or admin) */
        patch: operations["organisations.changeMember"];
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/invites": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Invitations to the tenant, newest first (owner or admin) */
        get: operations["organisations.invites"];
        put?: never;
        /** Invite somebody by mail (owner or admin); replaces an open invitation of that address */
        post: operations["organisations.invite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/invites/{invite_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Take an invitation back (owner or admin) */
        delete: operations["organisations.revokeInvite"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenant-invites/{token}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Join by the token of an invitation's letter */
        post: operations["organisations.acceptInvite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant's plan and its seats */
        get: operations["organisations.plan"];
        /** Choose the plan and its seats (owner or admin) */
        put: operations["organisations.setPlan"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/prices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a new account is given */
        get: operations["prices.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/credits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The balance */
        get: operations["billing.credits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/amounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the balance is made of, what is held and reserved, and what is left of it */
        get: operations["billing.amounts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The ledger, newest entry first */
        get: operations["billing.ledger"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The billing account */
        get: operations["billing.account"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Who gets billing mail, and whether members may spend (owner or admin) */
        patch: operations["billing.change"];
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/auto-reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The settings, and how auto-reload stands */
        get: operations["autoReload.find"];
        /** Replace all settings (owner or admin); fields that are not known are refused */
        put: operations["autoReload.change"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/auto-reload/charge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Charge the stored method now (owner or admin) */
        post: operations["autoReload.charge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/checkout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A page on which credits are paid (owner or admin) */
        post: operations["payments.checkout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/payment-methods/setup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A page on which a payment method is stored (owner or admin) */
        post: operations["payments.setup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/payments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Purchases of credit, newest first, with their refunds and disputes */
        get: operations["payments.payments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/payment-methods": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The stored payment methods */
        get: operations["payments.methods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/stripe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The payment processor's signed events; each does what it says once */
        post: operations["webhooks.stripe"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/transfers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The transfers that the tenant sent, newest first */
        get: operations["transfers.sent"];
        put?: never;
        /** Send credits: they leave the balance for escrow until the recipient answers */
        post: operations["transfers.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/transfers/{transfer_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Take a pending transfer back */
        delete: operations["transfers.revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/billing/transfers/{transfer_id}/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mail a new link in place of the one before, once in 12 hours */
        post: operations["transfers.resend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The transfers that were sent to my verified address, newest first */
        get: operations["transfers.received"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfers/{transfer_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One transfer that I received or sent */
        get: operations["transfers.transfer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfers/{transfer_id}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept: the credits land in my home tenant's balance */
        post: operations["transfers.accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfers/{transfer_id}/decline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decline: the credits go back */
        post: operations["transfers.decline"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfer-invites/{token}/attach": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Bind an invitation to my account; no money moves */
        post: operations["transfers.attach"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfer-invites/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an invitation is about, for whoever holds its link */
        get: operations["transferInvites.preview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenant-invites/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who invites to which team, for whoever holds the invitation's link */
        get: operations["tenantInvites.preview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/billing-sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who may pay for my calls, in the order of charging */
        get: operations["pooling.sources"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/billing-source": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Pin the source that is charged first, or leave the order to the service */
        put: operations["pooling.select"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/billing-sources/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What each source paid for my calls, by whole UTC days */
        get: operations["pooling.payerUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/billing-sources/capacity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What my sources have, and what is in escrow */
        get: operations["pooling.capacity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller's account used in the credential's tenant */
        get: operations["usage.summary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/payers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller's own calls by day, a series for each tenant that paid, in whichever tenant they were made */
        get: operations["usage.payers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/{usage_id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A charge computed again: units, price and its version, reservation, payer and why */
        get: operations["usage.explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A record of each call made with the tenant's credentials, whoever paid */
        get: operations["usage.records"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/usage/rollup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant's usage by day, month or year, in UTC; periods without calls are absent */
        get: operations["usage.rollup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/usage/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant's usage by hour or day as series, one for each model, account or whatever is asked for */
        get: operations["usage.series"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant_id}/usage/team": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the team's pool paid, and for whom */
        get: operations["usage.team"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Server-sent events of the token's tenant: `ready`, `call` (a row of `usage`), `balance` (as `billing/credits`), `notification` (a row of `notifications`; of the person's own sign-in only), `reset` (more than 1,000 calls were missed: read them anew), and `end` with a reason, the last one. Each has an id to go on behind */
        get: operations["events.events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Chat completion, streamed or not; fields unknown here pass through to the model */
        post: operations["chat.chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Text completion (legacy), streamed or not */
        post: operations["chat.completion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The models, with prices */
        get: operations["chat.models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One model, with its prices */
        get: operations["chat.model"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Message in Anthropic's protocol, streamed or not; fields unknown here pass through to the model */
        post: operations["messages.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/messages/count_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** How many tokens a prompt has; free, counted by the model's vendor where that can, else estimated by its bytes */
        post: operations["messages.countTokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Response in OpenAI's newer protocol, streamed or not; fields unknown here pass through to the model */
        post: operations["responses.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Answer typed questions about a state; 0.30 is set aside, input tokens are charged */
        post: operations["decisions.decide"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/systemone": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The same on the path that TypeSafe's own clients call */
        post: operations["decisions.systemOne"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embeddings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Embeddings of texts or tokens, as numbers or base64 */
        post: operations["embeddings.embed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embeddings/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The models that make embeddings, with prices */
        get: operations["embeddings.embeddingModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rerank": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Order documents by how well they answer a query, in the shape of Cohere and Jina */
        post: operations["rerank.rerank"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/rerank": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The same on the path of Cohere's second version */
        post: operations["rerank.rerankV2"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rerank/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The models that order documents, with prices */
        get: operations["rerank.rerankModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/email/self/send": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a letter to the verified address of the key's account */
        post: operations["mail.sendToSelf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/generate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make images; charged once they are there */
        post: operations["images.generate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/images/generate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make images; charged once they are there */
        post: operations["images.toolGenerate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/generations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make images with OpenAI's fields, on OpenAI's path; waited for */
        post: operations["images.createImage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/edits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make images from images with OpenAI's fields; waited for */
        post: operations["images.editImage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How an image request stands */
        get: operations["images.status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/images/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How an image request stands */
        get: operations["images.toolStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who makes images: names */
        get: operations["images.providers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/images/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who makes images, described */
        get: operations["images.toolProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/generate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Submit a generation: the quote is set aside, nothing is charged yet */
        post: operations["media.submit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a generation stands; poll until it is settled */
        get: operations["media.status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** My generations, newest first, as they stood when somebody last looked */
        get: operations["media.jobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was made; its address is temporary */
        get: operations["media.result"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file that was made, through the service: a picture, a film or a sound as what it is */
        get: operations["media.content"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask the vendor to stop, best effort */
        post: operations["media.cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/media/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The media models and their prices */
        get: operations["mediaModels.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Search the web, at the provider's price of a query */
        get: operations["search.search"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Search the web, at the provider's price of a query */
        get: operations["search.toolSearch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who can be searched with: names */
        get: operations["search.providers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/search/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who can be searched with, described */
        get: operations["search.toolProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/speech": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Text to speech: audio of the format that is asked for, as it comes */
        post: operations["speech.speak"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/speech": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Text to speech, where only the text must be given */
        post: operations["speech.speakSimply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audio/speech": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Text to speech with OpenAI's fields, on OpenAI's path */
        post: operations["speech.createSpeech"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/speech/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The models of speech and their prices */
        get: operations["speechModels.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transcriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Speech to text; the file streams, up to 25 MiB */
        post: operations["transcription.transcribe"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/transcriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Speech to text, its answer in an envelope */
        post: operations["transcription.toolTranscribe"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audio/transcriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Speech to text with OpenAI's fields, on OpenAI's path: JSON, text or subtitles */
        post: operations["transcription.createTranscription"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audio/translations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Speech to English text, by models that translate */
        post: operations["transcription.createTranslation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools/transcriptions/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The models of transcription and their prices */
        get: operations["transcriptionModels.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What I have been told, newest first */
        get: operations["notifications.notifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mark all as read, or those up to an id */
        post: operations["notifications.readNotifications"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications/{id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mark one as read */
        post: operations["notifications.readNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/web/client-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A token for one contact message, good for 30 minutes */
        post: operations["contact.clientToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/web/contact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write to the operator; spends the client token */
        post: operations["contact.contact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/operator/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A short access token for the operator's routes: for the code of a link (`tollgate operator`), which sets a cookie, or for that cookie */
        post: operations["operatorSession.open"];
        /** End the session of the cookie, with its tokens */
        delete: operations["operatorSession.close"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who acts, by which session */
        get: operations["operator.me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Links and sessions of operators that have not ended */
        get: operations["operator.sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a link or a session of an operator */
        delete: operations["operator.endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What operators did, over HTTP and by commands, the newest first */
        get: operations["operator.audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Find tenants, people, keys, calls, transfers and payments */
        get: operations["operator.search"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All tenants, the newest first */
        get: operations["operator.tenants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant: its money, plan, members and keys */
        get: operations["operator.tenant"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant's ledger, newest entry first */
        get: operations["operator.ledger"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The calls of a tenant, the latest first unless asked otherwise */
        get: operations["operator.usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/usage/{usage_id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A charge computed again, as the tenant that called sees it */
        get: operations["operator.explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/people/{account_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A person: identities, memberships, keys and sign-ins */
        get: operations["operator.person"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}/grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give a tenant credit that it can spend but not send on, once for a reference */
        post: operations["operator.grant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}/purchases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Book a purchase that was paid another way, once for a reference */
        post: operations["operator.purchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}/suspend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Suspend a tenant: it pays for no call and sends no transfer until it is activated */
        post: operations["operator.suspendTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/tenants/{tenant_id}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Activate a tenant that was suspended */
        post: operations["operator.activateTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/people/{account_id}/suspend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Suspend a person: their sign-ins end, and neither they nor their keys get in until they are activated */
        post: operations["operator.suspendPerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/people/{account_id}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Activate a person who was suspended */
        post: operations["operator.activatePerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/keys/{application_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke an API key, whosever it is */
        delete: operations["operator.revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/people/{account_id}/sign-ins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End all sign-ins of a person, those of applications too */
        delete: operations["operator.endSignIns"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/upstreams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How the upstreams have answered in the last minutes, and which models they serve */
        get: operations["operator.upstreams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/costs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was served and charged over all tenants, by day, provider and model */
        get: operations["operator.costs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/drift": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A vendor's invoice (CSV) beside what was charged, by day and model */
        post: operations["operator.drift"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/flight": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is reserved and in escrow, by age; what is unsettled and owed */
        get: operations["operator.flight"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/reservations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Open reservations, the oldest first */
        get: operations["operator.reservations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/owed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Refunds and disputes that balances could not give back */
        get: operations["operator.owed"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/loops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The loops of the service, its generation jobs and its outbox */
        get: operations["operator.loops"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** When the books were last found right, and how far a verification is that runs */
        get: operations["operator.verifications"];
        put?: never;
        /** Start a verification of the books */
        post: operations["operator.verify"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Server-sent events: `figures` once a second (calls a second, what is reserved and in escrow, open and unsettled calls, loops), and `end` with a reason, the last one */
        get: operations["operator.events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operator/invariants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Look at the invariants that cost little, now */
        post: operations["operator.invariants"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process is alive */
        get: operations["ops.health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The service can read and durably write, and its loops turn */
        get: operations["ops.ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Figures in Prometheus' text format */
        get: operations["ops.metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where the sandbox's issuer and levers are; 404 in every other deployment */
        get: operations["sandbox.info"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        SignInRequest: {
            id_token?: string;
            access_token?: string;
            client_id?: string;
        };
        SignedIn: {
            account_created: boolean;
            token_response: components["schemas"]["TokenResponse"];
        };
        TokenResponse: {
            access_token: string;
            /** @enum {string} */
            token_type: "Bearer";
            expires_in: components["schemas"]["Int"];
            refresh_token: string;
            scope?: string;
            id_token?: string;
        };
        /**
         * int
         * @description an integer
         */
        Int: number;
        RefreshRequest: {
            client_id?: string;
            grant_type?: string;
            refresh_token?: string;
            tenant_id?: string;
        };
        AuthorizationRequest: {
            client_id?: string;
            redirect_uri?: string;
            response_type?: string;
            scope?: string;
            state?: string;
            nonce?: string;
            code_challenge?: string;
            code_challenge_method?: string;
        };
        Consentable: {
            client_id: string;
            client_name: string;
            scope: string;
            granted: string;
            allows: string[];
            trusted: boolean;
            redirect_uri: string;
            state: string | null;
        };
        OAuthTokenRequest: {
            grant_type: string;
            code?: string;
            redirect_uri?: string;
            client_id?: string;
            code_verifier?: string;
            refresh_token?: string;
            device_code?: string;
        };
        DeviceRequest: {
            client_id: string;
            scope?: string;
        };
        DeviceResponse: {
            device_code: string;
            user_code: string;
            verification_uri: string;
            verification_uri_complete: string;
            expires_in: components["schemas"]["Int"];
            interval: components["schemas"]["Int"];
        };
        RevocationRequest: {
            token: string;
            token_type_hint?: string;
            client_id: string;
        };
        Consented: {
            code: string;
            state: string | null;
            redirect_uri: string;
        };
        UserInfo: {
            sub: string;
            name: string;
            email: string;
            email_verified: boolean;
        };
        ConsoleProviders: {
            service_name: string;
            providers: {
                /** @enum {string} */
                id: "google" | "microsoft";
                name: string;
            }[];
            sandbox: boolean;
        };
        ConsoleSessionRequest: {
            tenant_id?: string;
        };
        ConsoleToken: {
            access_token: string;
            /** @enum {string} */
            token_type: "Bearer";
            expires_in: components["schemas"]["Int"];
            account_id: string;
            tenant_id: string;
            session_expires_at: components["schemas"]["Moment"];
        };
        /** Format: date-time */
        Moment: string;
        Me: {
            account: components["schemas"]["Account"];
            identity: {
                email: string;
                provider: string;
                provider_id: string;
            };
            verification: {
                email_verified: boolean;
                /** @enum {string} */
                signup_grant: "claimed" | "pending" | "none";
                grant_amount?: components["schemas"]["Usd"];
            };
        };
        Account: {
            id: string;
            tenant_id: string;
            email: string;
            name: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            /** @enum {string} */
            status: "active" | "invited" | "suspended" | "removed";
            created_at: components["schemas"]["Moment"];
            updated_at: components["schemas"]["Moment"];
        };
        /** @description USD; 1 credit = 1 USD */
        Usd: number | string;
        Membership: {
            tenant_id: string;
            tenant_name: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            /** @enum {string} */
            status: "active" | "invited" | "suspended" | "removed";
            is_home: boolean;
            plan: {
                /** @enum {string} */
                status: "none" | "active" | "past_due" | "canceled";
                seats: components["schemas"]["Int"];
            };
        };
        NewApplication: {
            name: string;
            /**
             * maxLength(1000)
             * @description a string at most 1000 character(s) long
             */
            description?: string;
            spending_limit_usd?: components["schemas"]["Usd"] | null;
            /** @enum {string} */
            spending_limit_period?: "month" | "total";
            expires_at?: components["schemas"]["Moment"] | null;
            allowed_models?: string[] | null;
        };
        ApplicationCreated: {
            msg: string;
            result: components["schemas"]["ApplicationWithKey"];
        };
        ApplicationWithKey: {
            id: string;
            name: string;
            description: string;
            account_id: string;
            key_hash: string;
            key_prefix: string;
            last_used_at: components["schemas"]["Moment"] | null;
            created_at: components["schemas"]["Moment"];
            updated_at: components["schemas"]["Moment"];
            created_by?: {
                client_id: string;
                name: string;
            };
            spending_limit_usd?: components["schemas"]["Usd"];
            /** @enum {string} */
            spending_limit_period?: "month" | "total";
            spent_usd?: components["schemas"]["Usd"];
            reserved_usd?: components["schemas"]["Usd"];
            expires_at?: components["schemas"]["Moment"];
            allowed_models?: string[];
            api_key: string;
        };
        ApplicationPage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["Application"][];
        };
        Application: {
            id: string;
            name: string;
            description: string;
            account_id: string;
            key_hash: string;
            key_prefix: string;
            last_used_at: components["schemas"]["Moment"] | null;
            created_at: components["schemas"]["Moment"];
            updated_at: components["schemas"]["Moment"];
            created_by?: {
                client_id: string;
                name: string;
            };
            spending_limit_usd?: components["schemas"]["Usd"];
            /** @enum {string} */
            spending_limit_period?: "month" | "total";
            spent_usd?: components["schemas"]["Usd"];
            reserved_usd?: components["schemas"]["Usd"];
            expires_at?: components["schemas"]["Moment"];
            allowed_models?: string[];
        };
        ApplicationChange: {
            name?: string;
            /**
             * maxLength(1000)
             * @description a string at most 1000 character(s) long
             */
            description?: string;
            spending_limit_usd?: components["schemas"]["Usd"] | null;
            /** @enum {string} */
            spending_limit_period?: "month" | "total";
            expires_at?: components["schemas"]["Moment"] | null;
            allowed_models?: string[] | null;
        };
        NewOrganisation: {
            name: string;
        };
        OrganisationCreated: {
            msg: string;
            result: components["schemas"]["Organisation"];
        };
        Organisation: {
            id: string;
            name: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            created_at: components["schemas"]["Moment"];
        };
        Member: {
            account_id: string;
            name: string;
            email: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            /** @enum {string} */
            status: "active" | "invited" | "suspended" | "removed";
            is_home: boolean;
            created_at: components["schemas"]["Moment"];
            updated_at: components["schemas"]["Moment"];
        };
        MemberChange: {
            /** @enum {string} */
            role?: "owner" | "admin" | "member";
            /** @enum {string} */
            status?: "active" | "suspended" | "removed";
        };
        Invite: {
            id: string;
            tenant_id: string;
            email: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            /** @enum {string} */
            status: "pending" | "accepted" | "revoked" | "expired";
            invited_by: string;
            created_at: components["schemas"]["Moment"];
            expires_at: components["schemas"]["Moment"];
        };
        NewInvite: {
            email: components["schemas"]["Email"];
            /** @enum {string} */
            role?: "owner" | "admin" | "member";
        };
        /** Format: email */
        Email: string;
        InviteCreated: {
            msg: string;
            result: components["schemas"]["Invite"];
        };
        TenantPlan: {
            /** @enum {string} */
            plan: "none" | "team";
            /** @enum {string} */
            status: "none" | "active" | "past_due" | "canceled";
            seats: components["schemas"]["Int"];
            seats_taken: components["schemas"]["Int"];
        };
        PlanChange: {
            /** @enum {string} */
            plan: "none" | "team";
            /**
             * between(1, 10000)
             * @description a number between 1 and 10000
             */
            seats?: components["schemas"]["Int"];
        };
        Prices: {
            default_new_credits: components["schemas"]["Usd"];
            default_registration_credits: components["schemas"]["Usd"];
        };
        Credits: {
            balance: components["schemas"]["Usd"];
        };
        Amounts: {
            balance: components["schemas"]["Usd"];
            giftable: components["schemas"]["Usd"];
            granted: components["schemas"]["Usd"];
            held: components["schemas"]["Usd"];
            reserved: components["schemas"]["Usd"];
            available: components["schemas"]["Usd"];
        };
        LedgerPage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["LedgerEntry"][];
        };
        LedgerEntry: {
            id: string;
            billing_account_id: string;
            /** @enum {string} */
            type: "credit" | "debit";
            amount: components["schemas"]["Usd"];
            balance: components["schemas"]["Usd"];
            description: string;
            reference_id: string;
            created_at: components["schemas"]["Moment"];
            /** @enum {string} */
            source?: "purchase" | "registration_bonus" | "signup_grant" | "admin" | "transfer_escrow" | "transfer_release" | "transfer_return";
        };
        BillingAccount: {
            /** @enum {string} */
            status: "active" | "suspended" | "closed";
            credits: components["schemas"]["Usd"];
            giftable_credits: components["schemas"]["Usd"];
            held_credits: components["schemas"]["Usd"];
            has_been_funded: boolean;
            member_spend_effective: boolean;
            /** @enum {string} */
            member_spend_source: "explicit" | "default";
            billing_emails: string[];
            member_spend_enabled: boolean;
        };
        BillingChange: {
            /**
             * maxItems(10)
             * @description an array of at most 10 item(s)
             */
            billing_emails?: components["schemas"]["Email"][];
            member_spend_enabled?: boolean;
        };
        AutoReload: {
            configured: boolean;
            auto_reload: {
                enabled: boolean;
                threshold_usd: components["schemas"]["Usd"];
                amount_credits: components["schemas"]["Int"];
                payment_method_id: string | null;
                /** @enum {string} */
                state: "idle" | "in_flight" | "cooldown" | "failed" | "disabled";
                last_charged_at: components["schemas"]["Moment"] | null;
                last_error: string | null;
                disabled_reason: string | null;
                in_flight_started_at: components["schemas"]["Moment"] | null;
                failures: components["schemas"]["Int"];
                free_at: components["schemas"]["Moment"] | null;
            };
            alerts: {
                enabled: boolean;
                warn_threshold_usd: components["schemas"]["Usd"] | null;
                rearm_threshold_usd: components["schemas"]["Usd"] | null;
            };
            alerts_warned: boolean;
        };
        AutoReloadChange: {
            auto_reload: {
                enabled: boolean;
                /** @description USD; 1 credit = 1 USD */
                threshold_usd?: components["schemas"]["Usd"];
                /**
                 * between(5, 10000)
                 * @description a number between 5 and 10000
                 */
                amount_credits?: components["schemas"]["Int"];
                payment_method_id?: string | null;
            };
            alerts?: {
                enabled: boolean;
                warn_threshold_usd?: components["schemas"]["Usd"] | null;
                rearm_threshold_usd?: components["schemas"]["Usd"] | null;
            };
        };
        NewCheckout: {
            /**
             * between(5, 10000)
             * @description a number between 5 and 10000
             */
            amount_credits: components["schemas"]["Int"];
        };
        Checkout: {
            checkout_url: string;
        };
        PaymentMethodSetup: {
            setup_url: string;
        };
        PurchasePage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["Purchase"][];
        };
        Purchase: {
            id: string;
            /** @enum {string} */
            kind: "checkout" | "auto_reload" | "offline";
            amount: components["schemas"]["Usd"];
            created_at: components["schemas"]["Moment"];
            taken_back: components["schemas"]["Usd"];
            owed: components["schemas"]["Usd"];
            movements: {
                id: string;
                /** @enum {string} */
                kind: "refund" | "dispute";
                amount: components["schemas"]["Usd"];
                returned: boolean;
                at: components["schemas"]["Moment"];
            }[];
        };
        PaymentMethods: {
            payment_methods: components["schemas"]["PaymentMethod"][];
        };
        PaymentMethod: {
            id: string;
            type: string;
            brand: string | null;
            last4: string | null;
            exp_month: components["schemas"]["Int"] | null;
            exp_year: components["schemas"]["Int"] | null;
        };
        NewTransfer: {
            amount: components["schemas"]["JsonNumber"];
            recipient_email: string;
            kind: string;
            reason?: string | null;
            message?: string | null;
        };
        /**
         * finite
         * @description a finite number
         */
        JsonNumber: number;
        TransferCreated: {
            msg: string;
            result: components["schemas"]["Transfer"];
        };
        Transfer: {
            id: string;
            /** @enum {string} */
            status: "pending" | "accepted" | "declined" | "revoked" | "expired";
            /** @enum {string} */
            kind: "gift" | "transfer";
            amount: components["schemas"]["Usd"];
            reason: ("thanks" | "welcome" | "congrats") | null;
            message: string | null;
            sender: {
                account_id: string;
                name: string;
                email: string;
            };
            recipient_email: string;
            recipient_account_id: string | null;
            created_at: components["schemas"]["Moment"];
            updated_at: components["schemas"]["Moment"];
            expires_at: components["schemas"]["Moment"];
            last_sent_at: components["schemas"]["Moment"];
            accepted_at: components["schemas"]["Moment"] | null;
            declined_at: components["schemas"]["Moment"] | null;
            revoked_at: components["schemas"]["Moment"] | null;
        };
        TransferReplayed: {
            msg: string;
            result: components["schemas"]["Transfer"];
        };
        TransferPage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["Transfer"][];
        };
        TransferPreview: {
            /** @enum {string} */
            kind: "gift" | "transfer";
            amount: components["schemas"]["Usd"];
            reason: ("thanks" | "welcome" | "congrats") | null;
            message: string | null;
            sender_name: string;
            recipient_email_masked: string;
            /** @enum {string} */
            status: "pending" | "accepted" | "declined" | "revoked" | "expired";
            expires_at: components["schemas"]["Moment"];
        };
        InvitePreview: {
            tenant_name: string;
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            inviter_name: string;
            email_masked: string;
            /** @enum {string} */
            status: "pending" | "accepted" | "revoked" | "expired";
            expires_at: components["schemas"]["Moment"];
        };
        BillingSources: {
            sources: components["schemas"]["BillingSource"][];
            selection: components["schemas"]["BillingSourceSelection"] | null;
            selection_required: boolean;
        };
        BillingSource: {
            billing_account_id: string;
            tenant_id: string;
            tenant_name: string;
            /** @enum {string} */
            kind: "own" | "team";
            /** @enum {string} */
            role: "owner" | "admin" | "member";
            is_home: boolean;
            available: boolean;
            selected: boolean;
            credits: {
                balance: components["schemas"]["Usd"];
            };
            member_spend_enabled?: boolean;
            /** @enum {string} */
            member_spend_source?: "explicit" | "default";
        };
        BillingSourceSelection: {
            /** @enum {string} */
            mode: "automatic";
        } | {
            /** @enum {string} */
            mode: "pinned";
            billing_account_id: string;
        };
        PayerUsage: {
            window: {
                start: components["schemas"]["Moment"] | null;
                end: components["schemas"]["Moment"] | null;
            };
            totals: {
                total_requests: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
                total_cost: components["schemas"]["Usd"];
            };
            sources: {
                billing_account_id: string;
                tenant_id: string;
                /** @enum {string} */
                kind: "own" | "team";
                total_requests: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
                total_cost: components["schemas"]["Usd"];
            }[];
        };
        Capacity: {
            total_balance: components["schemas"]["Usd"];
            total_held: components["schemas"]["Usd"];
            sources: {
                billing_account_id: string;
                tenant_id: string;
                /** @enum {string} */
                kind: "own" | "team";
                balance: components["schemas"]["Usd"];
                held_credits: components["schemas"]["Usd"];
            }[];
        };
        UsageSummary: {
            total_requests: components["schemas"]["Int"];
            successful_requests: components["schemas"]["Int"];
            failed_requests: components["schemas"]["Int"];
            total_tokens: components["schemas"]["Int"];
            prompt_tokens: components["schemas"]["Int"];
            completion_tokens: components["schemas"]["Int"];
            total_cost: components["schemas"]["Usd"];
            average_latency_ms: number;
            model_breakdown: {
                model: string;
                request_count: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
                prompt_tokens: components["schemas"]["Int"];
                completion_tokens: components["schemas"]["Int"];
                total_cost: components["schemas"]["Usd"];
            }[];
            endpoint_breakdown: {
                endpoint: string;
                request_count: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
                total_cost: components["schemas"]["Usd"];
            }[];
        };
        PayerSeries: {
            /** @enum {string} */
            grain: "hour" | "day";
            /** @enum {string} */
            by: "payer";
            start_time: components["schemas"]["Moment"];
            end_time: components["schemas"]["Moment"];
            timestamps: components["schemas"]["Moment"][];
            series: {
                key: string | null;
                total: {
                    cost: components["schemas"]["Usd"];
                    requests: components["schemas"]["Int"];
                    failures: components["schemas"]["Int"];
                    tokens: components["schemas"]["Int"];
                };
                cost: components["schemas"]["Usd"][];
                requests: components["schemas"]["Int"][];
                failures: components["schemas"]["Int"][];
                tokens: components["schemas"]["Int"][];
            }[];
            total: {
                cost: components["schemas"]["Usd"];
                requests: components["schemas"]["Int"];
                failures: components["schemas"]["Int"];
                tokens: components["schemas"]["Int"];
            };
        };
        Explanation: {
            usage_id: string;
            timestamp: components["schemas"]["Moment"];
            endpoint: string;
            model: string;
            provider: string;
            success: boolean;
            error_type: string | null;
            usage_source: string;
            price: {
                version: string;
                lines: {
                    quantity: number;
                    unit: string;
                    above_prompt_tokens?: components["schemas"]["Int"];
                    unit_price_usd: string;
                    amount_usd: string;
                }[];
            } | null;
            computed_usd: components["schemas"]["Usd"];
            reserved_usd: components["schemas"]["Usd"];
            charged_usd: components["schemas"]["Usd"];
            uncollected_usd: components["schemas"]["Usd"];
            payer: {
                billing_account_id: string;
                tenant_id: string;
                /** @enum {string} */
                kind: "own" | "team";
                why: ("own" | "pinned" | "team_first" | "fall_through") | null;
                because: string;
            };
            summary: string;
        };
        UsageRecordPage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["UsageRecord"][];
            next_cursor: string | null;
        };
        UsageRecord: {
            id: string;
            timestamp: components["schemas"]["Moment"];
            account_id: string;
            tenant_id: string;
            /** @enum {string} */
            usage_type: "inference" | "tool";
            model: string;
            provider: string;
            prompt_tokens: components["schemas"]["Int"];
            completion_tokens: components["schemas"]["Int"];
            total_tokens: components["schemas"]["Int"];
            units: number;
            cost: components["schemas"]["Usd"];
            uncollected?: components["schemas"]["Usd"];
            latency: number;
            success: boolean;
            error_type?: string;
            endpoint: string;
            billing_account_id: string;
            billing_source_tenant_id: string;
            /** @enum {string} */
            billing_source_kind: "own" | "team";
            /** @enum {string} */
            usage_source?: "counted" | "estimated";
            token_details?: {
                cached_audio_tokens?: components["schemas"]["Int"];
                cached_tokens?: components["schemas"]["Int"];
                cache_write_tokens?: components["schemas"]["Int"];
                cache_write_1h_tokens?: components["schemas"]["Int"];
                prompt_audio_tokens?: components["schemas"]["Int"];
                prompt_image_tokens?: components["schemas"]["Int"];
                reasoning_tokens?: components["schemas"]["Int"];
                completion_audio_tokens?: components["schemas"]["Int"];
                completion_image_tokens?: components["schemas"]["Int"];
            };
        };
        UsageRollup: {
            /** @enum {string} */
            rollup: "daily" | "monthly" | "annual";
            start_date: components["schemas"]["Moment"] | null;
            end_date: components["schemas"]["Moment"] | null;
            data_points: components["schemas"]["UsageDataPoint"][];
        };
        UsageDataPoint: {
            timestamp: components["schemas"]["Moment"];
            total_requests: components["schemas"]["Int"];
            total_tokens: components["schemas"]["Int"];
            prompt_tokens: components["schemas"]["Int"];
            completion_tokens: components["schemas"]["Int"];
            units: number;
            total_cost: components["schemas"]["Usd"];
            success_count: components["schemas"]["Int"];
            failure_count: components["schemas"]["Int"];
        };
        UsageSeries: {
            /** @enum {string} */
            grain: "hour" | "day";
            /** @enum {string} */
            by: "none" | "model" | "account" | "endpoint" | "application" | "provider" | "payer";
            start_time: components["schemas"]["Moment"];
            end_time: components["schemas"]["Moment"];
            timestamps: components["schemas"]["Moment"][];
            series: {
                key: string | null;
                total: {
                    cost: components["schemas"]["Usd"];
                    requests: components["schemas"]["Int"];
                    failures: components["schemas"]["Int"];
                    tokens: components["schemas"]["Int"];
                };
                cost: components["schemas"]["Usd"][];
                requests: components["schemas"]["Int"][];
                failures: components["schemas"]["Int"][];
                tokens: components["schemas"]["Int"][];
            }[];
            total: {
                cost: components["schemas"]["Usd"];
                requests: components["schemas"]["Int"];
                failures: components["schemas"]["Int"];
                tokens: components["schemas"]["Int"];
            };
        };
        TeamUsage: {
            window: {
                start: components["schemas"]["Moment"] | null;
                end: components["schemas"]["Moment"] | null;
            };
            /** @enum {string} */
            rollup: "daily" | "monthly" | "annual";
            tenant_id: string;
            viewer: {
                account_id: string;
                /** @enum {string} */
                role: "owner" | "admin" | "member";
            };
            totals: {
                total_requests: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
                total_cost: components["schemas"]["Usd"];
            };
            members: {
                account_id: string;
                name: string;
                email: string;
                role: ("owner" | "admin" | "member") | null;
                /** @enum {string} */
                status: "active" | "invited" | "suspended" | "removed";
                in_roster: boolean;
                is_viewer: boolean;
                totals: {
                    total_requests: components["schemas"]["Int"];
                    total_tokens: components["schemas"]["Int"];
                    total_cost: components["schemas"]["Usd"];
                };
            }[];
            series: {
                team: components["schemas"]["UsageDataPoint"][];
                viewer: components["schemas"]["UsageDataPoint"][];
                others: components["schemas"]["UsageDataPoint"][];
                members: {
                    [key: string]: components["schemas"]["UsageDataPoint"][];
                };
            };
        };
        ChatRequest: {
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            /**
             * minItems(1)
             * @description an array of at least 1 item(s)
             */
            messages: {
                role: string;
                /** unknown */
                content?: unknown;
            }[];
            frequency_penalty?: components["schemas"]["JsonNumber"] | null;
            presence_penalty?: components["schemas"]["JsonNumber"] | null;
            logit_bias?: {
                [key: string]: components["schemas"]["JsonNumber"];
            } | null;
            max_tokens?: components["schemas"]["Int"] | null;
            max_completion_tokens?: components["schemas"]["Int"] | null;
            best_of?: components["schemas"]["Int"] | null;
            n?: components["schemas"]["Int"] | null;
            seed?: components["schemas"]["Int"] | null;
            stop?: (string | string[]) | null;
            stream?: boolean | null;
            stream_options?: {
                include_usage?: boolean | null;
            } | null;
            temperature?: components["schemas"]["JsonNumber"] | null;
            top_p?: components["schemas"]["JsonNumber"] | null;
            user?: string | null;
            logprobs?: boolean | null;
            top_logprobs?: components["schemas"]["Int"] | null;
            response_format?: {
                type: string;
            } | null;
            tools?: {
                type: string;
            }[] | null;
            tool_choice?: (string | {
                type: string;
            }) | null;
            parallel_tool_calls?: boolean | null;
        };
        ChatAnswer: {
            id: string;
            /** @enum {string} */
            object: "chat.completion";
            created: components["schemas"]["Int"];
            model: string;
            choices: {
                index: components["schemas"]["Int"];
                message: {
                    role: string;
                    content: string | null;
                };
                finish_reason: string;
            }[];
            usage?: {
                prompt_tokens: components["schemas"]["Int"];
                completion_tokens: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
            };
        };
        CompletionRequest: {
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            prompt: string | string[] | components["schemas"]["Int"][] | components["schemas"]["Int"][][];
            frequency_penalty?: components["schemas"]["JsonNumber"] | null;
            presence_penalty?: components["schemas"]["JsonNumber"] | null;
            logit_bias?: {
                [key: string]: components["schemas"]["JsonNumber"];
            } | null;
            max_tokens?: components["schemas"]["Int"] | null;
            max_completion_tokens?: components["schemas"]["Int"] | null;
            best_of?: components["schemas"]["Int"] | null;
            n?: components["schemas"]["Int"] | null;
            seed?: components["schemas"]["Int"] | null;
            stop?: (string | string[]) | null;
            stream?: boolean | null;
            stream_options?: {
                include_usage?: boolean | null;
            } | null;
            temperature?: components["schemas"]["JsonNumber"] | null;
            top_p?: components["schemas"]["JsonNumber"] | null;
            user?: string | null;
            echo?: boolean | null;
            logprobs?: components["schemas"]["Int"] | null;
            suffix?: string | null;
        };
        CompletionAnswer: {
            id: string;
            /** @enum {string} */
            object: "text_completion";
            created: components["schemas"]["Int"];
            model: string;
            choices: {
                text: string;
                index: components["schemas"]["Int"];
                finish_reason: string;
            }[];
            usage?: {
                prompt_tokens: components["schemas"]["Int"];
                completion_tokens: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
            };
        };
        ModelList: {
            /** @enum {string} */
            object: "list";
            data: components["schemas"]["ModelEntry"][];
        };
        ModelEntry: {
            id: string;
            /** @enum {string} */
            object: "model";
            created: components["schemas"]["Int"];
            owned_by: string;
            name: string;
            description: string;
            context_length: components["schemas"]["Int"];
            architecture: {
                input_modalities: string[];
                output_modalities: string[];
            };
            top_provider: {
                context_length: components["schemas"]["Int"];
                max_completion_tokens: components["schemas"]["Int"];
            };
            pricing: {
                prompt: string;
                completion: string;
                request: string;
                input_audio_cache_read?: string;
                input_cache_read?: string;
                input_cache_write?: string;
                input_cache_write_1h?: string;
                internal_reasoning?: string;
                audio?: string;
                image?: string;
                audio_output?: string;
                image_output?: string;
                long_context?: {
                    above_prompt_tokens: components["schemas"]["Int"];
                    prompt?: string;
                    completion?: string;
                    input_audio_cache_read?: string;
                    input_cache_read?: string;
                    input_cache_write?: string;
                    input_cache_write_1h?: string;
                    internal_reasoning?: string;
                    audio?: string;
                    image?: string;
                    audio_output?: string;
                    image_output?: string;
                }[];
            };
            protocols: ("chat" | "text" | "messages" | "responses")[];
            native_protocols: ("chat" | "text" | "messages" | "responses")[];
            extras?: {
                field: string;
                values?: string[];
                price_factor: string;
                request: string;
            }[];
        };
        MessagesRequest: {
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            /**
             * minItems(1)
             * @description an array of at least 1 item(s)
             */
            messages: {
                role: string;
                /** unknown */
                content: unknown;
            }[];
            /**
             * between(1, 1000000000)
             * @description a number between 1 and 1000000000
             */
            max_tokens: components["schemas"]["Int"];
            /** unknown */
            system?: unknown;
            thinking?: {
                type: string;
            } | null;
            tool_choice?: {
                type: string;
            } | null;
            tools?: {
                name?: string;
                type?: string | null;
            }[] | null;
            metadata?: {
                user_id?: string | null;
            } | null;
            stop_sequences?: string[] | null;
            stream?: boolean | null;
            temperature?: components["schemas"]["JsonNumber"] | null;
            top_k?: components["schemas"]["Int"] | null;
            top_p?: components["schemas"]["JsonNumber"] | null;
        };
        MessageAnswer: {
            id: string;
            /** @enum {string} */
            type: "message";
            /** @enum {string} */
            role: "assistant";
            model: string;
            content: {
                type: string;
                text?: string;
            }[];
            stop_reason: string | null;
            stop_sequence: string | null;
            usage: {
                input_tokens: components["schemas"]["Int"];
                output_tokens: components["schemas"]["Int"];
            };
        };
        CountTokensRequest: {
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            /**
             * minItems(1)
             * @description an array of at least 1 item(s)
             */
            messages: {
                role: string;
                /** unknown */
                content: unknown;
            }[];
            /** unknown */
            system?: unknown;
            thinking?: {
                type: string;
            } | null;
            tool_choice?: {
                type: string;
            } | null;
            tools?: {
                name?: string;
                type?: string | null;
            }[] | null;
        };
        TokenCount: {
            input_tokens: components["schemas"]["Int"];
        };
        ResponsesRequest: {
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            /** unknown */
            input: unknown;
            instructions?: string | null;
            max_output_tokens?: components["schemas"]["Int"] | null;
            metadata?: {
                [key: string]: string;
            } | null;
            parallel_tool_calls?: boolean | null;
            previous_response_id?: string | null;
            reasoning?: {
                effort?: string | null;
            } | null;
            store?: boolean | null;
            stream?: boolean | null;
            temperature?: components["schemas"]["JsonNumber"] | null;
            text?: {
                format?: {
                    type: string;
                } | null;
            } | null;
            tool_choice?: (string | {
                type: string;
            }) | null;
            tools?: {
                type: string;
            }[] | null;
            top_p?: components["schemas"]["JsonNumber"] | null;
            user?: string | null;
        };
        ResponseAnswer: {
            id: string;
            /** @enum {string} */
            object: "response";
            created_at: number;
            status: string;
            model: string;
            output: {
                type: string;
                id?: string;
            }[];
            usage: {
                input_tokens: components["schemas"]["Int"];
                output_tokens: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
            } | null;
        };
        DecisionRequest: {
            /** unknown */
            state: unknown;
            questions: {
                [key: string]: {
                    type: string;
                    /** unknown */
                    instructions?: unknown;
                    /** unknown */
                    criteria?: unknown;
                };
            };
            model?: string;
        };
        DecisionAnswer: {
            answers: {
                [key: string]: unknown;
            };
            id: string;
            model: string;
            provider: string;
            usage: {
                input_tokens: components["schemas"]["Int"];
                output_tokens: components["schemas"]["Int"];
                cost: number;
            };
        };
        EmbeddingRequest: {
            model: string;
            input: string | string[] | components["schemas"]["Int"][] | components["schemas"]["Int"][][];
            encoding_format?: ("float" | "base64") | null;
            dimensions?: components["schemas"]["Int"] | null;
            user?: string | null;
        };
        EmbeddingAnswer: {
            /** @enum {string} */
            object: "list";
            data: {
                /** @enum {string} */
                object: "embedding";
                index: components["schemas"]["Int"];
                embedding: number[] | string;
            }[];
            model: string;
            usage: {
                prompt_tokens: components["schemas"]["Int"];
                total_tokens: components["schemas"]["Int"];
            };
        };
        EmbeddingModelList: {
            /** @enum {string} */
            object: "list";
            data: {
                id: string;
                /** @enum {string} */
                object: "model";
                owned_by: string;
                name: string;
                description: string;
                context_length: components["schemas"]["Int"];
                dimensions?: components["schemas"]["Int"];
                pricing: {
                    prompt: string;
                };
            }[];
        };
        RerankRequest: {
            model: string;
            query: string;
            documents: (string | {
                text: string;
            })[];
            top_n?: components["schemas"]["Int"] | null;
            return_documents?: boolean | null;
        };
        RerankAnswer: {
            results: {
                index: components["schemas"]["Int"];
                relevance_score: number;
                document?: {
                    text: string;
                };
            }[];
        };
        RerankModelList: {
            /** @enum {string} */
            object: "list";
            data: {
                id: string;
                /** @enum {string} */
                object: "model";
                owned_by: string;
                name: string;
                description: string;
                pricing: {
                    prompt: string;
                    search: string;
                };
            }[];
        };
        SelfLetter: {
            subject: string;
            body: string;
        };
        SelfLetterSent: {
            message: string;
            message_id: string;
        };
        ImageRequest: {
            prompt: string;
            /**
             * greaterThanOrEqualTo(1)
             * @description a number greater than or equal to 1
             */
            num_images?: number | null;
            image_size?: ("square_hd" | "square" | "portrait_4_3" | "portrait_16_9" | "landscape_4_3" | "landscape_16_9") | null;
            source_url?: string | null;
            /**
             * between(0, 1)
             * @description a number between 0 and 1
             */
            strength?: components["schemas"]["JsonNumber"] | null;
            sync_mode?: boolean | null;
            provider?: string | null;
            /**
             * int
             * @description an integer
             */
            seed?: number | null;
            guidance_scale?: components["schemas"]["JsonNumber"] | null;
            /**
             * int
             * @description an integer
             */
            num_inference_steps?: number | null;
        };
        ImageAnswer: {
            request_id: string;
            /** @enum {string} */
            status: "COMPLETED" | "PROCESSING" | "FAILED";
            images?: {
                url: string;
                width?: number;
                height?: number;
            }[];
            provider?: string;
            error?: string;
        };
        OpenAiImageRequest: {
            prompt: string;
            model?: string | null;
            /**
             * positive
             * @description a positive number
             */
            n?: components["schemas"]["Int"] | null;
            size?: string | null;
            quality?: ("auto" | "standard") | null;
            response_format?: ("url" | "b64_json") | null;
            output_format?: ("png" | "jpeg" | "webp") | null;
            background?: "auto" | null;
            moderation?: "auto" | null;
            style?: null;
            output_compression?: 100 | null;
            partial_images?: 0 | null;
            stream?: false | null;
            user?: string | null;
        };
        OpenAiImages: {
            created: components["schemas"]["Int"];
            data: {
                url?: string;
                b64_json?: string;
            }[];
        };
        /** Format: binary */
        PersistedFile: string;
        ProviderNames: {
            providers: string[];
        };
        ProviderList: {
            providers: {
                id: string;
                name: string;
                description: string;
            }[];
        };
        MediaRequest: {
            model?: string;
            prompt?: string;
            duration?: components["schemas"]["Int"];
            resolution?: string;
            audio?: boolean;
            seed?: components["schemas"]["Int"];
            start_image_url?: string;
            num_images?: components["schemas"]["Int"];
            image_size?: string;
            strength?: number;
        };
        MediaSubmitted: {
            request_id: string;
            model: string;
            provider: string;
            /** @enum {string} */
            status: "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "CANCELLED";
            queue_position: components["schemas"]["Int"];
            cost_usd: components["schemas"]["Usd"];
            units: number;
            unit: string;
        };
        MediaStatus: {
            request_id: string;
            model: string;
            /** @enum {string} */
            status: "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "CANCELLED";
            metrics: {
                inference_time: number;
            };
            settled: boolean;
            cost_usd: components["schemas"]["Usd"];
            units: number;
            unit: string;
            error?: string;
            /** @enum {string} */
            error_type?: "media_rejected" | "media_failed" | "media_rate_limited" | "media_unavailable";
        };
        MediaJobPage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["MediaJobEntry"][];
        };
        MediaJobEntry: {
            request_id: string;
            model: string;
            /** @enum {string} */
            status: "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "CANCELLED";
            metrics: {
                inference_time: number;
            };
            settled: boolean;
            cost_usd: components["schemas"]["Usd"];
            units: number;
            unit: string;
            error?: string;
            /** @enum {string} */
            error_type?: "media_rejected" | "media_failed" | "media_rate_limited" | "media_unavailable";
            /** @enum {string} */
            type: "video" | "image";
            provider: string;
            created_at: components["schemas"]["Moment"];
        };
        MediaResult: {
            request_id: string;
            model: string;
            /** @enum {string} */
            status: "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "CANCELLED";
            output: {
                [key: string]: unknown;
            };
            error?: string;
            /** @enum {string} */
            error_type?: "media_rejected" | "media_failed" | "media_rate_limited" | "media_unavailable";
        };
        MediaModelEntry: {
            id: string;
            display_name: string;
            /** @enum {string} */
            type: "video" | "image";
            /** @enum {string} */
            unit: "second" | "image";
            unit_price_usd: number;
            pricing_note: string;
            default: boolean;
        };
        SearchAnswer: {
            query: string;
            results: {
                title: string;
                url: string;
                content: string;
                raw_content?: string;
            }[];
            provider?: string;
            error?: string;
        };
        SpeechRequest: {
            input: string;
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            /** @enum {string} */
            voice: "alloy" | "ash" | "ballad" | "coral" | "echo" | "fable" | "onyx" | "nova" | "sage" | "shimmer" | "verse";
            /** @enum {string} */
            response_format?: "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";
            /**
             * between(0.25, 4)
             * @description a number between 0.25 and 4
             */
            speed?: components["schemas"]["JsonNumber"];
            instructions?: string;
            provider?: string;
        };
        ToolSpeechRequest: {
            input: string;
            model?: string;
            /** @enum {string} */
            voice?: "alloy" | "ash" | "ballad" | "coral" | "echo" | "fable" | "onyx" | "nova" | "sage" | "shimmer" | "verse";
            /** @enum {string} */
            response_format?: "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";
            /**
             * between(0.25, 4)
             * @description a number between 0.25 and 4
             */
            speed?: components["schemas"]["JsonNumber"];
            instructions?: string;
            provider?: string;
        };
        OpenAiSpeechRequest: {
            input: string;
            /**
             * nonEmptyString
             * @description a non empty string
             */
            model: string;
            voice: string;
            /** @enum {string} */
            response_format?: "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";
            /**
             * between(0.25, 4)
             * @description a number between 0.25 and 4
             */
            speed?: components["schemas"]["JsonNumber"];
            instructions?: string;
            /** @enum {string} */
            stream_format?: "audio" | "sse";
        };
        ToolModelList: {
            models: components["schemas"]["ToolModelEntry"][];
        };
        ToolModelEntry: {
            id: string;
            provider: string;
            provider_name: string;
            /** @enum {string} */
            unit: "character" | "second";
            unit_price_usd: number;
            default: boolean;
        };
        TranscriptionAnswer: {
            text: string;
            /** @enum {string} */
            status: "completed" | "failed";
            provider: string;
            duration?: number;
            error?: string;
        };
        OpenAiTranscription: {
            text: string;
        };
        NotificationPage: {
            page: components["schemas"]["Int"];
            per_page: components["schemas"]["Int"];
            total_pages: components["schemas"]["Int"];
            total_records: components["schemas"]["Int"];
            records: components["schemas"]["Notification"][];
            unread: components["schemas"]["Int"];
        };
        Notification: {
            id: string;
            /** @enum {string} */
            kind: "transfer_received" | "transfer_ended" | "tenant_invite" | "low_balance" | "auto_reload_failed";
            title: string;
            text: string;
            data: {
                [key: string]: string;
            };
            created_at: components["schemas"]["Moment"];
            read_at: components["schemas"]["Moment"] | null;
        };
        NotificationsRead: {
            up_to?: string;
        };
        NotificationsMarked: {
            marked: components["schemas"]["Int"];
            unread: components["schemas"]["Int"];
        };
        ClientToken: {
            token: string;
            expires_in: components["schemas"]["Int"];
        };
        ContactMessage: {
            name: string;
            email: components["schemas"]["Email"];
            inquiryType: string;
            message: string;
            subscribe?: boolean;
        };
        OperatorSessionRequest: {
            /**
             * maxLength(200)
             * @description a string at most 200 character(s) long
             */
            code?: string;
        };
        OperatorSessionToken: {
            access_token: string;
            expires_in: components["schemas"]["Int"];
            name: string;
        };
        OperatorMe: {
            name: string;
            session_id: string;
            signed_in_at: components["schemas"]["Moment"];
            expires_at: components["schemas"]["Moment"];
        };
        OperatorSessions: {
            sessions: components["schemas"]["OperatorSession"][];
        };
        OperatorSession: {
            id: string;
            name: string;
            /** @enum {string} */
            kind: "link" | "browser" | "token";
            created_at: components["schemas"]["Moment"];
            signed_in_at: components["schemas"]["Moment"] | null;
            expires_at: components["schemas"]["Moment"];
            current: boolean;
        };
        OperatorSessionEnded: {
            ended: boolean;
        };
        AuditEntry: {
            id: components["schemas"]["Int"];
            at: components["schemas"]["Moment"];
            operator: string;
            /** @enum {string} */
            via: "console" | "token" | "command";
            action: string;
            tenant_id: string | null;
            account_id: string | null;
            subject: string | null;
            /** @enum {string} */
            result: "done" | "refused";
            details: {
                [key: string]: unknown;
            };
        };
        OperatorFound: {
            tenants: components["schemas"]["OperatorTenantLine"][];
            people: components["schemas"]["OperatorPersonLine"][];
            keys: components["schemas"]["OperatorKeyLine"][];
            calls: (components["schemas"]["OperatorOpenCall"] | components["schemas"]["OperatorEndedCall"])[];
            transfers: components["schemas"]["OperatorTransferLine"][];
            payments: components["schemas"]["OperatorPaymentLine"][];
        };
        OperatorTenantLine: {
            id: string;
            name: string;
            owner_email: string | null;
            created_at: components["schemas"]["Moment"];
            balance: components["schemas"]["Usd"];
            /** @enum {string} */
            status: "active" | "suspended" | "closed";
        };
        OperatorPersonLine: {
            id: string;
            name: string;
            email: string;
            email_verified: boolean;
            home_tenant_id: string;
            /** @enum {string} */
            status: "active" | "suspended";
            created_at: components["schemas"]["Moment"];
        };
        OperatorKeyLine: {
            id: string;
            name: string;
            key_prefix: string;
            tenant_id: string;
            account_id: string;
            created_at: components["schemas"]["Moment"];
            last_used_at: components["schemas"]["Moment"] | null;
            expires_at: components["schemas"]["Moment"] | null;
        };
        OperatorOpenCall: {
            id: string;
            /** @enum {string} */
            state: "open";
            timestamp: components["schemas"]["Moment"];
            tenant_id: string;
            account_id: string;
            model: string;
            provider: string;
            reserved_usd: components["schemas"]["Usd"];
        };
        OperatorEndedCall: {
            id: string;
            timestamp: components["schemas"]["Moment"];
            account_id: string;
            tenant_id: string;
            /** @enum {string} */
            usage_type: "inference" | "tool";
            model: string;
            provider: string;
            prompt_tokens: components["schemas"]["Int"];
            completion_tokens: components["schemas"]["Int"];
            total_tokens: components["schemas"]["Int"];
            units: number;
            cost: components["schemas"]["Usd"];
            uncollected?: components["schemas"]["Usd"];
            latency: number;
            success: boolean;
            error_type?: string;
            endpoint: string;
            billing_account_id: string;
            billing_source_tenant_id: string;
            /** @enum {string} */
            billing_source_kind: "own" | "team";
            /** @enum {string} */
            usage_source?: "counted" | "estimated";
            token_details?: {
                cached_audio_tokens?: components["schemas"]["Int"];
                cached_tokens?: components["schemas"]["Int"];
                cache_write_tokens?: components["schemas"]["Int"];
                cache_write_1h_tokens?: components["schemas"]["Int"];
                prompt_audio_tokens?: components["schemas"]["Int"];
                prompt_image_tokens?: components["schemas"]["Int"];
                reasoning_tokens?: components["schemas"]["Int"];
                completion_audio_tokens?: components["schemas"]["Int"];
                completion_image_tokens?: components["schemas"]["Int"];
            };
            /** @enum {string} */
            state: "ended";
        };
        OperatorTransferLine: {
            id: string;
            /** @enum {string} */
            status: "pending" | "accepted" | "declined" | "revoked" | "expired";
            amount: components["schemas"]["Usd"];
            sender_tenant_id: string;
            recipient_email: string;
            created_at: components["schemas"]["Moment"];
        };
        OperatorPaymentLine: {
            id: string;
            tenant_id: string;
            amount: components["schemas"]["Usd"];
            at: components["schemas"]["Moment"];
            /** @enum {string} */
            source: "checkout" | "auto_reload" | "offline" | "grant";
        };
        OperatorTenant: {
            id: string;
            name: string;
            created_at: components["schemas"]["Moment"];
            /** @enum {string} */
            status: "active" | "suspended" | "closed";
            plan: {
                /** @enum {string} */
                plan: "none" | "team";
                /** @enum {string} */
                status: "active" | "past_due" | "canceled";
                seats: components["schemas"]["Int"];
            };
            money: {
                balance: components["schemas"]["Usd"];
                giftable: components["schemas"]["Usd"];
                granted: components["schemas"]["Usd"];
                held: components["schemas"]["Usd"];
                reserved: components["schemas"]["Usd"];
                available: components["schemas"]["Usd"];
            };
            has_been_funded: boolean;
            open_calls: components["schemas"]["Int"];
            members: components["schemas"]["Member"][];
            keys: {
                id: string;
                name: string;
                key_prefix: string;
                tenant_id: string;
                account_id: string;
                created_at: components["schemas"]["Moment"];
                last_used_at: components["schemas"]["Moment"] | null;
                expires_at: components["schemas"]["Moment"] | null;
                spending_limit_usd?: components["schemas"]["Usd"];
                spent_usd?: components["schemas"]["Usd"];
            }[];
            total_keys: components["schemas"]["Int"];
        };
        OperatorPerson: {
            id: string;
            name: string;
            email: string;
            email_verified: boolean;
            home_tenant_id: string;
            /** @enum {string} */
            status: "active" | "suspended";
            created_at: components["schemas"]["Moment"];
            suspended_at: components["schemas"]["Moment"] | null;
            identities: {
                provider: string;
                provider_id: string;
                email: string;
            }[];
            memberships: components["schemas"]["Membership"][];
            keys: components["schemas"]["OperatorKeyLine"][];
            sign_ins: {
                id: string;
                client_id: string;
                application: boolean;
                signed_in_at: components["schemas"]["Moment"];
            }[];
        };
        OperatorCredit: {
            /** @description a decimal number above 0 and up to 1000000000, with at most 9 places */
            amount: number;
            /** @description 1 to 200 characters on one line */
            reference: string;
            /** @description 1 to 200 characters on one line */
            description?: string;
            /** @description 1 to 200 characters on one line */
            reason?: string;
        };
        OperatorCredited: {
            tenant_id: string;
            amount: components["schemas"]["Usd"];
            reference: string;
            balance: components["schemas"]["Usd"];
            done: boolean;
        };
        OperatorReason: {
            /** @description 1 to 200 characters on one line */
            reason?: string;
        };
        OperatorTenantChanged: {
            tenant_id: string;
            /** @enum {string} */
            status: "active" | "suspended" | "closed";
            changed: boolean;
        };
        OperatorPersonChanged: {
            account_id: string;
            /** @enum {string} */
            status: "active" | "suspended";
            changed: boolean;
        };
        OperatorKeyRevoked: {
            id: string;
            revoked: boolean;
        };
        OperatorSignInsEnded: {
            account_id: string;
            ended: components["schemas"]["Int"];
        };
        OperatorUpstreams: {
            node: string | null;
            upstreams: components["schemas"]["OperatorUpstream"][];
            models: {
                model: string;
                upstreams: string[];
                serving: string | null;
            }[];
        };
        OperatorUpstream: {
            name: string;
            speaks: string[];
            /** @enum {string} */
            state: "ok" | "failing" | "unused";
            requests: {
                "2xx": components["schemas"]["Int"];
                "4xx": components["schemas"]["Int"];
                "5xx": components["schemas"]["Int"];
                unreachable: components["schemas"]["Int"];
            };
            failures_in_a_row: components["schemas"]["Int"];
            last_success_at: components["schemas"]["Moment"] | null;
            last_failure_at: components["schemas"]["Moment"] | null;
            last_failure: ("5xx" | "unreachable") | null;
            latency_ms: {
                p50: number;
                p95: number;
            } | null;
            minutes: {
                at: components["schemas"]["Moment"];
                requests: components["schemas"]["Int"];
                failures: components["schemas"]["Int"];
            }[];
        };
        OperatorCosts: {
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            rows: {
                /** Format: date */
                day: string;
                provider: string;
                model: string;
                requests: components["schemas"]["Int"];
                failures: components["schemas"]["Int"];
                prompt_tokens: number;
                completion_tokens: number;
                units: number;
                charged: components["schemas"]["Usd"];
                uncollected: components["schemas"]["Usd"];
                vendor_cost: components["schemas"]["Usd"] | null;
            }[];
            truncated: boolean;
        };
        OperatorDrift: {
            columns: {
                day: string;
                model: string;
                amount: string;
                quantity: string | null;
            };
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            rows: {
                /** Format: date */
                day: string;
                model: string;
                theirs: components["schemas"]["Usd"];
                ours: components["schemas"]["Usd"];
                difference: components["schemas"]["Usd"];
                requests: components["schemas"]["Int"];
                quantity: string | null;
            }[];
            totals: {
                theirs: components["schemas"]["Usd"];
                ours: components["schemas"]["Usd"];
                difference: components["schemas"]["Usd"];
            };
            bad_lines: {
                line: components["schemas"]["Int"];
                why: string;
            }[];
            bad_lines_total: components["schemas"]["Int"];
            truncated: boolean;
        };
        OperatorFlight: {
            at: components["schemas"]["Moment"];
            node: string | null;
            reserved: components["schemas"]["Usd"];
            open_calls: components["schemas"]["Int"];
            oldest_at: components["schemas"]["Moment"] | null;
            unsettled: components["schemas"]["Int"];
            escrowed: components["schemas"]["Usd"];
            pending_transfers: components["schemas"]["Int"];
            ages: {
                from_seconds: components["schemas"]["Int"];
                to_seconds: components["schemas"]["Int"] | null;
                calls: components["schemas"]["Int"];
                amount: components["schemas"]["Usd"];
            }[];
            escrow_ages: {
                from_days: components["schemas"]["Int"];
                to_days: components["schemas"]["Int"] | null;
                transfers: components["schemas"]["Int"];
                amount: components["schemas"]["Usd"];
            }[];
            owed: components["schemas"]["Usd"];
        };
        OperatorReservation: {
            id: string;
            at: components["schemas"]["Moment"];
            amount: components["schemas"]["Usd"];
            tenant_id: string;
            account_id: string;
            payer_tenant_id: string;
            model: string;
            provider: string;
            endpoint: string;
            run: string;
            node_alive: boolean;
        };
        OperatorOwed: {
            owed: {
                payment_id: string;
                tenant_id: string;
                owed: components["schemas"]["Usd"];
            }[];
            waiting: {
                payment_id: string;
                movements: components["schemas"]["Int"];
                since: components["schemas"]["Moment"];
            }[];
        };
        OperatorWork: {
            node: {
                name: string;
                leads: boolean;
                leader: string | null;
                lease_seconds: number;
                renewed_seconds_ago: number;
                nodes: number;
            } | null;
            loops: {
                loop: string;
                running: boolean;
                last_turn_at: components["schemas"]["Moment"] | null;
                next_turn_at: components["schemas"]["Moment"] | null;
                seconds_since_good: number;
                failures: components["schemas"]["Int"];
                trouble: string | null;
            }[];
            jobs: {
                /** @enum {string} */
                kind: "media";
                status: string;
                count: components["schemas"]["Int"];
                oldest_at: components["schemas"]["Moment"];
            }[];
            outbox: {
                waiting: components["schemas"]["Int"];
                oldest_at: components["schemas"]["Moment"] | null;
            };
        };
        OperatorVerifications: {
            running: {
                began_at: components["schemas"]["Moment"];
                whole: boolean;
                rows: components["schemas"]["Int"];
                of: components["schemas"]["Int"];
            } | null;
            last: components["schemas"]["OperatorVerification"] | null;
            last_held: components["schemas"]["OperatorVerification"] | null;
            recent: components["schemas"]["OperatorVerification"][];
            behind: {
                entries: components["schemas"]["Int"];
                records: components["schemas"]["Int"];
            };
            found: {
                check: string;
                message: string;
            }[];
        };
        OperatorVerification: {
            at: components["schemas"]["Moment"];
            whole: boolean;
            findings: components["schemas"]["Int"];
            millis: components["schemas"]["Int"];
            entry: components["schemas"]["Int"];
            record: components["schemas"]["Int"];
        };
        OperatorNewVerification: {
            whole?: boolean;
        };
        OperatorInvariants: {
            at: components["schemas"]["Moment"];
            millis: components["schemas"]["Int"];
            checks: {
                name: string;
                holds: boolean;
                findings: string[];
            }[];
        };
        SandboxInfo: {
            issuer: string;
            control: string;
            client_id: string;
            service_client_id: string;
            oauth_client: {
                client_id: string;
                redirect_uri: string;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "auth.google": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id_token": "{id_token}",
                 *       "client_id": "{client_id}"
                 *     }
                 */
                "application/json": components["schemas"]["SignInRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "auth.microsoft": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id_token": "{id_token}",
                 *       "client_id": "{client_id}"
                 *     }
                 */
                "application/json": components["schemas"]["SignInRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "auth.refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "{client_id}",
                 *       "grant_type": "refresh_token",
                 *       "refresh_token": "{refresh_token}"
                 *     }
                 */
                "application/json": components["schemas"]["RefreshRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TokenResponse"];
                    };
                };
            };
        };
    };
    "auth.refreshGoogle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "{client_id}",
                 *       "grant_type": "refresh_token",
                 *       "refresh_token": "{refresh_token}"
                 *     }
                 */
                "application/json": components["schemas"]["RefreshRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TokenResponse"];
                    };
                };
            };
        };
    };
    "auth.refreshMicrosoft": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "{client_id}",
                 *       "grant_type": "refresh_token",
                 *       "refresh_token": "{refresh_token}"
                 *     }
                 */
                "application/json": components["schemas"]["RefreshRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TokenResponse"];
                    };
                };
            };
        };
    };
    "auth.revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "{refresh_token}",
                 *       "token_type": "refresh_token"
                 *     }
                 */
                "application/json": {
                    token: string;
                    token_type?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            /** @enum {boolean} */
                            success: true;
                        };
                    };
                };
            };
        };
    };
    "auth.keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: {
                            [key: string]: unknown;
                        }[];
                    };
                };
            };
        };
    };
    "oauth.request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "{oauth_client_id}",
                 *       "redirect_uri": "{redirect_uri}",
                 *       "response_type": "code",
                 *       "scope": "openid calls",
                 *       "state": "af0ifjsldkj",
                 *       "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                 *       "code_challenge_method": "S256"
                 *     }
                 */
                "application/json": components["schemas"]["AuthorizationRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Consentable"];
                    };
                };
            };
        };
    };
    "oauth.token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "grant_type": "authorization_code",
                 *       "code": "{code}",
                 *       "redirect_uri": "{redirect_uri}",
                 *       "client_id": "{oauth_client_id}",
                 *       "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
                 *     }
                 */
                "application/json": components["schemas"]["OAuthTokenRequest"];
            };
        };
        responses: {
            /** @description TokenResponse */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenResponse"];
                };
            };
        };
    };
    "oauth.device": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "{oauth_client_id}",
                 *       "scope": "openid calls"
                 *     }
                 */
                "application/json": components["schemas"]["DeviceRequest"];
            };
        };
        responses: {
            /** @description DeviceResponse */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceResponse"];
                };
            };
        };
    };
    "oauth.revokeToken": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "{refresh_token}",
                 *       "client_id": "{oauth_client_id}"
                 *     }
                 */
                "application/json": components["schemas"]["RevocationRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "oauth.discovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    "oauth.authorizationServer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    "consent.code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "client_id": "{oauth_client_id}",
                 *       "redirect_uri": "{redirect_uri}",
                 *       "response_type": "code",
                 *       "scope": "openid calls",
                 *       "state": "af0ifjsldkj",
                 *       "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                 *       "code_challenge_method": "S256"
                 *     }
                 */
                "application/json": components["schemas"]["AuthorizationRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Consented"];
                    };
                };
            };
        };
    };
    "userinfo.userinfo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description UserInfo */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserInfo"];
                };
            };
        };
    };
    "userinfo.userinfoPosted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description UserInfo */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserInfo"];
                };
            };
        };
    };
    "browser.authorize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "browser.decide": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "browser.device": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "browser.decideDevice": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "browser.signedIn": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "browser.resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "console.providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["ConsoleProviders"];
                    };
                };
            };
        };
    };
    "console.signIn": {
        parameters: {
            query?: {
                /** @description The console's page to come back to, by its path below /console/ */
                to?: string;
                /** @description Who signs in; of a link on the console's own page only */
                login_hint?: string;
            };
            header?: never;
            path: {
                provider: "google" | "microsoft";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    "console.openSession": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConsoleSessionRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["ConsoleToken"];
                    };
                };
            };
        };
    };
    "console.endSession": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            /** @enum {boolean} */
                            success: true;
                        };
                    };
                };
            };
        };
    };
    "tenants.me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Me"];
                    };
                };
            };
        };
    };
    "tenants.memberships": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            memberships: components["schemas"]["Membership"][];
                        };
                    };
                };
            };
        };
    };
    "tenants.account": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Account"];
                    };
                };
            };
        };
    };
    "tenants.listApplications": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["ApplicationPage"];
                    };
                };
            };
        };
    };
    "tenants.createApplication": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "nightly report",
                 *       "description": "reads usage"
                 *     }
                 */
                "application/json": components["schemas"]["NewApplication"];
            };
        };
        responses: {
            /** @description ApplicationCreated */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApplicationCreated"];
                };
            };
        };
    };
    "tenants.application": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                application_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Application"];
                    };
                };
            };
        };
    };
    "tenants.deleteApplication": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                application_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Application"];
                    };
                };
            };
        };
    };
    "tenants.changeApplication": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                application_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "weekly report"
                 *     }
                 */
                "application/json": components["schemas"]["ApplicationChange"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Application"];
                    };
                };
            };
        };
    };
    "organisations.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Acme"
                 *     }
                 */
                "application/json": components["schemas"]["NewOrganisation"];
            };
        };
        responses: {
            /** @description OrganisationCreated */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrganisationCreated"];
                };
            };
        };
    };
    "organisations.members": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            members: components["schemas"]["Member"][];
                        };
                    };
                };
            };
        };
    };
    "organisations.removeMember": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Member"];
                    };
                };
            };
        };
    };
    "organisations.changeMember": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                account_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "admin"
                 *     }
                 */
                "application/json": components["schemas"]["MemberChange"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Member"];
                    };
                };
            };
        };
    };
    "organisations.invites": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            invites: components["schemas"]["Invite"][];
                        };
                    };
                };
            };
        };
    };
    "organisations.invite": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "grace@example.com",
                 *       "role": "member"
                 *     }
                 */
                "application/json": components["schemas"]["NewInvite"];
            };
        };
        responses: {
            /** @description InviteCreated */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InviteCreated"];
                };
            };
        };
    };
    "organisations.revokeInvite": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                invite_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Invite"];
                    };
                };
            };
        };
    };
    "organisations.acceptInvite": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Membership"];
                    };
                };
            };
        };
    };
    "organisations.plan": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TenantPlan"];
                    };
                };
            };
        };
    };
    "organisations.setPlan": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "team",
                 *       "seats": 5
                 *     }
                 */
                "application/json": components["schemas"]["PlanChange"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TenantPlan"];
                    };
                };
            };
        };
    };
    "prices.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Prices"];
                    };
                };
            };
        };
    };
    "billing.credits": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Credits"];
                    };
                };
            };
        };
    };
    "billing.amounts": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Amounts"];
                    };
                };
            };
        };
    };
    "billing.ledger": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
                /**
                 * @description Only entries of these sources, with commas between them; or `call`: only charges, which have none
                 * @example purchase,transfer_release
                 */
                source?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["LedgerPage"];
                    };
                };
            };
        };
    };
    "billing.account": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["BillingAccount"];
                    };
                };
            };
        };
    };
    "billing.change": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "billing_emails": [
                 *         "billing@example.com"
                 *       ],
                 *       "member_spend_enabled": true
                 *     }
                 */
                "application/json": components["schemas"]["BillingChange"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["BillingAccount"];
                    };
                };
            };
        };
    };
    "autoReload.find": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["AutoReload"];
                    };
                };
            };
        };
    };
    "autoReload.change": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "auto_reload": {
                 *         "enabled": true,
                 *         "threshold_usd": 5,
                 *         "amount_credits": 25,
                 *         "payment_method_id": "{payment_method_id}"
                 *       },
                 *       "alerts": {
                 *         "enabled": true,
                 *         "warn_threshold_usd": 2,
                 *         "rearm_threshold_usd": 4
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["AutoReloadChange"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["AutoReload"];
                    };
                };
            };
        };
    };
    "autoReload.charge": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["AutoReload"];
                    };
                };
            };
        };
    };
    "payments.checkout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount_credits": 25
                 *     }
                 */
                "application/json": components["schemas"]["NewCheckout"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Checkout"];
                    };
                };
            };
        };
    };
    "payments.setup": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["PaymentMethodSetup"];
                    };
                };
            };
        };
    };
    "payments.payments": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["PurchasePage"];
                    };
                };
            };
        };
    };
    "payments.methods": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["PaymentMethods"];
                    };
                };
            };
        };
    };
    "webhooks.stripe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": string;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {boolean} */
                        received: true;
                    };
                };
            };
        };
    };
    "transfers.sent": {
        parameters: {
            query?: {
                /** @description Only transfers in this state */
                status?: "pending" | "accepted" | "declined" | "revoked" | "expired";
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TransferPage"];
                    };
                };
            };
        };
    };
    "transfers.create": {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant.
                 * @example gift-to-grace-2026-01
                 */
                "Idempotency-Key": string;
            };
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount": 2.5,
                 *       "recipient_email": "grace@example.com",
                 *       "kind": "gift",
                 *       "reason": "thanks",
                 *       "message": "For the review"
                 *     }
                 */
                "application/json": components["schemas"]["NewTransfer"];
            };
        };
        responses: {
            /** @description TransferReplayed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransferReplayed"];
                };
            };
            /** @description TransferCreated */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransferCreated"];
                };
            };
        };
    };
    "transfers.revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                transfer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Transfer"];
                    };
                };
            };
        };
    };
    "transfers.resend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
                transfer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Transfer"];
                    };
                };
            };
        };
    };
    "transfers.received": {
        parameters: {
            query?: {
                /** @description Only transfers in this state */
                status?: "pending" | "accepted" | "declined" | "revoked" | "expired";
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TransferPage"];
                    };
                };
            };
        };
    };
    "transfers.transfer": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                transfer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Transfer"];
                    };
                };
            };
        };
    };
    "transfers.accept": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                transfer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Transfer"];
                    };
                };
            };
        };
    };
    "transfers.decline": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                transfer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Transfer"];
                    };
                };
            };
        };
    };
    "transfers.attach": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Transfer"];
                    };
                };
            };
        };
    };
    "transferInvites.preview": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TransferPreview"];
                    };
                };
            };
        };
    };
    "tenantInvites.preview": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["InvitePreview"];
                    };
                };
            };
        };
    };
    "pooling.sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["BillingSources"];
                    };
                };
            };
        };
    };
    "pooling.select": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "mode": "automatic"
                 *     }
                 */
                "application/json": {
                    /** @enum {string} */
                    mode: "automatic";
                } | {
                    /** @enum {string} */
                    mode: "pinned";
                    billing_account_id: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["BillingSources"];
                    };
                };
            };
        };
    };
    "pooling.payerUsage": {
        parameters: {
            query?: {
                /** @description RFC 3339; the whole UTC day that it falls into is counted */
                start_date?: string;
                /** @description RFC 3339; whole UTC days before it are counted, the one that it falls into too */
                end_date?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["PayerUsage"];
                    };
                };
            };
        };
    };
    "pooling.capacity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Capacity"];
                    };
                };
            };
        };
    };
    "usage.summary": {
        parameters: {
            query?: {
                /**
                 * @description RFC 3339, date and time; the first instant inside
                 * @example 2026-01-01T00:00:00Z
                 */
                start_time?: string;
                /** @description RFC 3339, date and time; the first instant behind the window */
                end_time?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description UsageSummary */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageSummary"];
                };
            };
        };
    };
    "usage.payers": {
        parameters: {
            query?: {
                /**
                 * @description Required, RFC 3339; the whole bucket that it falls into is counted
                 * @example 2026-01-01
                 */
                start_time?: string;
                /**
                 * @description Required, RFC 3339; whole buckets before it are counted, the one that it falls into too
                 * @example 2026-01-31
                 */
                end_time?: string;
                /** @description How many series are named at the most, 1 to 50; 8, unless said otherwise */
                top?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description PayerSeries */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PayerSeries"];
                };
            };
        };
    };
    "usage.explain": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                usage_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Explanation */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
        };
    };
    "usage.records": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /**
                 * @description How many records a page has: 50, at most 200
                 * @example 20
                 */
                per_page?: string;
                /** @description RFC 3339; the first instant inside */
                start_date?: string;
                /** @description RFC 3339; the first instant behind the window. A bare date includes its day */
                end_date?: string;
                /**
                 * @description timestamp, unless said otherwise
                 * @example cost
                 */
                sort?: "timestamp" | "cost" | "total_tokens" | "latency";
                /**
                 * @description desc, unless said otherwise
                 * @example desc
                 */
                direction?: "asc" | "desc";
                /** @description Only calls of this model. Filtered records are sorted by time */
                model?: string;
                /** @description Only calls that this provider served */
                provider?: string;
                /** @description Only calls of this endpoint */
                endpoint?: string;
                /** @description Only calls of this account */
                account_id?: string;
                /** @description Only calls with a key of this application; empty: calls by user token */
                application_id?: string;
                /** @description Only calls that this tenant paid */
                billing_source_tenant_id?: string;
                /** @description Only calls of this type */
                usage_type?: "inference" | "tool";
                /** @description Only calls that succeeded, or that failed */
                success?: "true" | "false";
                /** @description `next_cursor` of the page before: goes on where that one ended */
                cursor?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["UsageRecordPage"];
                    };
                };
            };
        };
    };
    "usage.rollup": {
        parameters: {
            query?: {
                /**
                 * @description Required: the width of a data point
                 * @example daily
                 */
                rollup?: "daily" | "monthly" | "annual";
                /**
                 * @description RFC 3339; the whole UTC day that it falls into is counted
                 * @example 2026-01-01
                 */
                start_date?: string;
                /** @description RFC 3339; whole UTC days before it are counted, the one that it falls into too */
                end_date?: string;
                /** @description Only calls with a key of this application */
                application_id?: string;
                /** @description Only calls of this type */
                usage_type?: "inference" | "tool";
                /** @description Only calls that this provider served */
                provider?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["UsageRollup"];
                    };
                };
            };
        };
    };
    "usage.series": {
        parameters: {
            query?: {
                /**
                 * @description Required, RFC 3339; the whole bucket that it falls into is counted
                 * @example 2026-01-01T00:00:00Z
                 */
                start_time?: string;
                /**
                 * @description Required, RFC 3339; whole buckets before it are counted, the one that it falls into too
                 * @example 2026-01-31
                 */
                end_time?: string;
                /**
                 * @description The width of a bucket in UTC; day, unless said otherwise
                 * @example hour
                 */
                grain?: "hour" | "day";
                /**
                 * @description What series are told apart by; none, unless said otherwise. Payers are tenants
                 * @example model
                 */
                by?: "none" | "model" | "account" | "endpoint" | "application" | "provider" | "payer";
                /**
                 * @description How many series are named at the most, 1 to 50; 8, unless said otherwise
                 * @example 5
                 */
                top?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["UsageSeries"];
                    };
                };
            };
        };
    };
    "usage.team": {
        parameters: {
            query?: {
                /** @description RFC 3339; the whole UTC day that it falls into is counted */
                start_date?: string;
                /** @description RFC 3339; whole UTC days before it are counted, the one that it falls into too */
                end_date?: string;
                /**
                 * @description The width of a data point; daily, unless said otherwise
                 * @example monthly
                 */
                rollup?: "daily" | "monthly" | "annual";
                /** @description Up to 5 account ids with commas between them: `members` and `series.members` hold these only */
                members?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TeamUsage"];
                    };
                };
            };
        };
    };
    "events.events": {
        parameters: {
            query?: {
                /** @description The id of the last event that came: goes on behind it */
                cursor?: string;
            };
            header?: {
                /** @description The same; it goes before the cursor */
                "last-event-id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    "chat.chat": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "auto",
                 *       "messages": [
                 *         {
                 *           "role": "user",
                 *           "content": "Why is the sky blue?"
                 *         }
                 *       ],
                 *       "max_tokens": 200
                 *     }
                 */
                "application/json": components["schemas"]["ChatRequest"];
            };
        };
        responses: {
            /** @description ChatAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatAnswer"];
                    "text/event-stream": string;
                };
            };
        };
    };
    "chat.completion": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "auto",
                 *       "prompt": "The sky is blue because",
                 *       "max_tokens": 200
                 *     }
                 */
                "application/json": components["schemas"]["CompletionRequest"];
            };
        };
        responses: {
            /** @description CompletionAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompletionAnswer"];
                    "text/event-stream": string;
                };
            };
        };
    };
    "chat.models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ModelList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelList"];
                };
            };
        };
    };
    "chat.model": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ModelEntry */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelEntry"];
                };
            };
        };
    };
    "messages.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "auto",
                 *       "messages": [
                 *         {
                 *           "role": "user",
                 *           "content": "Why is the sky blue?"
                 *         }
                 *       ],
                 *       "max_tokens": 200
                 *     }
                 */
                "application/json": components["schemas"]["MessagesRequest"];
            };
        };
        responses: {
            /** @description MessageAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessageAnswer"];
                    "text/event-stream": string;
                };
            };
        };
    };
    "messages.countTokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "auto",
                 *       "messages": [
                 *         {
                 *           "role": "user",
                 *           "content": "Why is the sky blue?"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CountTokensRequest"];
            };
        };
        responses: {
            /** @description TokenCount */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenCount"];
                };
            };
        };
    };
    "responses.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "auto",
                 *       "input": "Why is the sky blue?",
                 *       "max_output_tokens": 200
                 *     }
                 */
                "application/json": components["schemas"]["ResponsesRequest"];
            };
        };
        responses: {
            /** @description ResponseAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResponseAnswer"];
                    "text/event-stream": string;
                };
            };
        };
    };
    "decisions.decide": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "state": {
                 *         "cart_usd": 140,
                 *         "returning": true
                 *       },
                 *       "questions": {
                 *         "offer_discount": {
                 *           "type": "noul",
                 *           "instructions": "Would a discount be decisive?"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DecisionRequest"];
            };
        };
        responses: {
            /** @description DecisionAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecisionAnswer"];
                };
            };
        };
    };
    "decisions.systemOne": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "state": {
                 *         "cart_usd": 140,
                 *         "returning": true
                 *       },
                 *       "questions": {
                 *         "offer_discount": {
                 *           "type": "noul",
                 *           "instructions": "Would a discount be decisive?"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DecisionRequest"];
            };
        };
        responses: {
            /** @description DecisionAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecisionAnswer"];
                };
            };
        };
    };
    "embeddings.embed": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "sandbox-embedding",
                 *       "input": [
                 *         "The tide is in.",
                 *         "The tide is out."
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["EmbeddingRequest"];
            };
        };
        responses: {
            /** @description EmbeddingAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbeddingAnswer"];
                };
            };
        };
    };
    "embeddings.embeddingModels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description EmbeddingModelList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbeddingModelList"];
                };
            };
        };
    };
    "rerank.rerank": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "sandbox-rerank",
                 *       "query": "When is high tide?",
                 *       "documents": [
                 *         "The harbour opens at nine.",
                 *         "High tide is at noon."
                 *       ],
                 *       "top_n": 1
                 *     }
                 */
                "application/json": components["schemas"]["RerankRequest"];
            };
        };
        responses: {
            /** @description RerankAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RerankAnswer"];
                };
            };
        };
    };
    "rerank.rerankV2": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "sandbox-rerank",
                 *       "query": "When is high tide?",
                 *       "documents": [
                 *         "The harbour opens at nine.",
                 *         "High tide is at noon."
                 *       ],
                 *       "top_n": 1
                 *     }
                 */
                "application/json": components["schemas"]["RerankRequest"];
            };
        };
        responses: {
            /** @description RerankAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RerankAnswer"];
                };
            };
        };
    };
    "rerank.rerankModels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description RerankModelList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RerankModelList"];
                };
            };
        };
    };
    "mail.sendToSelf": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "subject": "The nightly report",
                 *       "body": "All is well."
                 *     }
                 */
                "application/json": components["schemas"]["SelfLetter"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["SelfLetterSent"];
                    };
                };
            };
        };
    };
    "images.generate": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "prompt": "a lighthouse at dusk",
                 *       "num_images": 1,
                 *       "image_size": "square_hd"
                 *     }
                 */
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description ImageAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageAnswer"];
                };
            };
        };
    };
    "images.toolGenerate": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "prompt": "a lighthouse at dusk",
                 *       "num_images": 1,
                 *       "image_size": "square_hd"
                 *     }
                 */
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description ImageAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageAnswer"];
                };
            };
        };
    };
    "images.createImage": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "prompt": "a lighthouse at dusk",
                 *       "size": "1024x1024"
                 *     }
                 */
                "application/json": components["schemas"]["OpenAiImageRequest"];
            };
        };
        responses: {
            /** @description OpenAiImages */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAiImages"];
                };
            };
        };
    };
    "images.editImage": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "prompt": "the same at night"
                 *     }
                 */
                "multipart/form-data": {
                    image: components["schemas"]["PersistedFile"][];
                    /**
                     * itemsCount(1)
                     * @description an array of exactly 1 item(s)
                     */
                    mask?: components["schemas"]["PersistedFile"][];
                    prompt: string;
                    model?: string;
                    /** @description a string to be decoded into a number */
                    n?: string;
                    size?: string;
                    /** @enum {string} */
                    quality?: "auto" | "standard";
                    /** @enum {string} */
                    response_format?: "url" | "b64_json";
                    /** @enum {string} */
                    output_format?: "png" | "jpeg" | "webp";
                    /** @enum {string} */
                    background?: "auto";
                    /** @enum {string} */
                    input_fidelity?: "low";
                    /** @enum {string} */
                    output_compression?: "100";
                    /** @enum {string} */
                    partial_images?: "0";
                    /** @enum {string} */
                    stream?: "false";
                    user?: string;
                };
            };
        };
        responses: {
            /** @description OpenAiImages */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAiImages"];
                };
            };
        };
    };
    "images.status": {
        parameters: {
            query: {
                /**
                 * @description The id that the request was answered with
                 * @example {image_request_id}
                 */
                request_id: string;
                /** @description Not needed: the id says who makes it */
                provider?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ImageAnswer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageAnswer"];
                };
            };
        };
    };
    "images.toolStatus": {
        parameters: {
            query: {
                /**
                 * @description The id that the request was answered with
                 * @example {image_request_id}
                 */
                request_id: string;
                /** @description Not needed: the id says who makes it */
                provider?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ImageAnswer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageAnswer"];
                };
            };
        };
    };
    "images.providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ProviderNames */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderNames"];
                };
            };
        };
    };
    "images.toolProviders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ProviderList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderList"];
                };
            };
        };
    };
    "media.submit": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "{media_model}",
                 *       "prompt": "waves against a lighthouse"
                 *     }
                 */
                "application/json": components["schemas"]["MediaRequest"];
            };
        };
        responses: {
            /** @description MediaSubmitted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MediaSubmitted"];
                };
            };
        };
    };
    "media.status": {
        parameters: {
            query: {
                /**
                 * @description The id that the submission was answered with
                 * @example {media_request_id}
                 */
                request_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description MediaStatus */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MediaStatus"];
                };
            };
        };
    };
    "media.jobs": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description MediaJobPage */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MediaJobPage"];
                };
            };
        };
    };
    "media.result": {
        parameters: {
            query: {
                /**
                 * @description The id that the submission was answered with
                 * @example {media_request_id}
                 */
                request_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description MediaResult */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MediaResult"];
                };
            };
        };
    };
    "media.content": {
        parameters: {
            query: {
                /**
                 * @description The id that the submission was answered with
                 * @example {media_request_id}
                 */
                request_id: string;
                /** @description Which of several pictures, from 0 */
                index?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                    "image/png": string;
                    "image/jpeg": string;
                    "image/gif": string;
                    "image/webp": string;
                    "image/avif": string;
                    "video/mp4": string;
                    "video/webm": string;
                    "video/quicktime": string;
                    "audio/mpeg": string;
                    "audio/wav": string;
                    "audio/ogg": string;
                    "audio/mp4": string;
                    "audio/flac": string;
                };
            };
        };
    };
    "media.cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "request_id": "{media_request_id}"
                 *     }
                 */
                "application/json": {
                    /** @description The id that the submission was answered with */
                    request_id: string;
                };
            };
        };
        responses: {
            /** @description MediaStatus */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MediaStatus"];
                };
            };
        };
    };
    "mediaModels.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        models: components["schemas"]["MediaModelEntry"][];
                    };
                };
            };
        };
    };
    "search.search": {
        parameters: {
            query: {
                /**
                 * @description What is searched for, up to 2,000 characters
                 * @example why is the sky blue
                 */
                query: string;
                /**
                 * @description How many results at most, up to 100; 10 unless said otherwise
                 * @example 5
                 */
                max_results?: string;
                /** @description Who is asked, a name of the providers; the first unless said otherwise */
                provider?: string;
                /** @description `true`, or `false`, the default: whether results hold the whole text of their pages */
                include_raw?: string;
                /** @description `basic`, `advanced` or another that the provider knows: it is passed on as it is */
                search_depth?: string;
                /** @description Up to 50 domains with commas between them: only results from these */
                domains?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description SearchAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
        };
    };
    "search.toolSearch": {
        parameters: {
            query: {
                /**
                 * @description What is searched for, up to 2,000 characters
                 * @example why is the sky blue
                 */
                query: string;
                /**
                 * @description How many results at most, up to 100; 10 unless said otherwise
                 * @example 5
                 */
                max_results?: string;
                /** @description Who is asked, a name of the providers; the first unless said otherwise */
                provider?: string;
                /** @description `true`, or `false`, the default: whether results hold the whole text of their pages */
                include_raw?: string;
                /** @description `basic`, `advanced` or another that the provider knows: it is passed on as it is */
                search_depth?: string;
                /** @description Up to 50 domains with commas between them: only results from these */
                domains?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description SearchAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
        };
    };
    "search.providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ProviderNames */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderNames"];
                };
            };
        };
    };
    "search.toolProviders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ProviderList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderList"];
                };
            };
        };
    };
    "speech.speak": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "input": "The tide is in.",
                 *       "model": "tts-1",
                 *       "voice": "alloy",
                 *       "response_format": "mp3"
                 *     }
                 */
                "application/json": components["schemas"]["SpeechRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "audio/mpeg": string;
                    "audio/opus": string;
                    "audio/aac": string;
                    "audio/flac": string;
                    "audio/wav": string;
                    "audio/pcm": string;
                };
            };
        };
    };
    "speech.speakSimply": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "input": "The tide is in."
                 *     }
                 */
                "application/json": components["schemas"]["ToolSpeechRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "audio/mpeg": string;
                    "audio/opus": string;
                    "audio/aac": string;
                    "audio/flac": string;
                    "audio/wav": string;
                    "audio/pcm": string;
                };
            };
        };
    };
    "speech.createSpeech": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "input": "The tide is in.",
                 *       "model": "tts-1",
                 *       "voice": "alloy"
                 *     }
                 */
                "application/json": components["schemas"]["OpenAiSpeechRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "audio/mpeg": string;
                    "audio/opus": string;
                    "audio/aac": string;
                    "audio/flac": string;
                    "audio/wav": string;
                    "audio/pcm": string;
                    "text/event-stream": string;
                };
            };
        };
    };
    "speechModels.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ToolModelList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolModelList"];
                };
            };
        };
    };
    "transcription.transcribe": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": {
                    /**
                     * itemsCount(1)
                     * @description an array of exactly 1 item(s)
                     */
                    file: components["schemas"]["PersistedFile"][];
                    model?: string;
                    prompt?: string;
                    /** @enum {string} */
                    response_format?: "json" | "text" | "verbose_json" | "srt" | "vtt";
                    temperature?: string;
                    /** @description a string matching the pattern ^[a-z]{2}$ */
                    language?: string;
                    provider?: string;
                };
            };
        };
        responses: {
            /** @description TranscriptionAnswer */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TranscriptionAnswer"];
                };
            };
        };
    };
    "transcription.toolTranscribe": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": {
                    /**
                     * itemsCount(1)
                     * @description an array of exactly 1 item(s)
                     */
                    file: components["schemas"]["PersistedFile"][];
                    model?: string;
                    prompt?: string;
                    /** @enum {string} */
                    response_format?: "json" | "text" | "verbose_json" | "srt" | "vtt";
                    temperature?: string;
                    /** @description a string matching the pattern ^[a-z]{2}$ */
                    language?: string;
                    provider?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["TranscriptionAnswer"];
                    };
                };
            };
        };
    };
    "transcription.createTranscription": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "whisper-1"
                 *     }
                 */
                "multipart/form-data": {
                    /**
                     * itemsCount(1)
                     * @description an array of exactly 1 item(s)
                     */
                    file: components["schemas"]["PersistedFile"][];
                    /**
                     * nonEmptyString
                     * @description a non empty string
                     */
                    model: string;
                    prompt?: string;
                    /** @enum {string} */
                    response_format?: "json" | "text" | "verbose_json" | "srt" | "vtt";
                    temperature?: string;
                    /** @description a string matching the pattern ^[a-z]{2}$ */
                    language?: string;
                    /** @enum {string} */
                    stream?: "true" | "false";
                    timestamp_granularities?: ("word" | "segment") | ("word" | "segment")[];
                    "timestamp_granularities[]"?: ("word" | "segment") | ("word" | "segment")[];
                };
            };
        };
        responses: {
            /** @description OpenAiTranscription */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAiTranscription"] | string;
                };
            };
        };
    };
    "transcription.createTranslation": {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes a retry safe: the same key with the same request is done once, and answered with its first answer. A key belongs to the caller's account in the tenant. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "whisper-1"
                 *     }
                 */
                "multipart/form-data": {
                    /**
                     * itemsCount(1)
                     * @description an array of exactly 1 item(s)
                     */
                    file: components["schemas"]["PersistedFile"][];
                    /**
                     * nonEmptyString
                     * @description a non empty string
                     */
                    model: string;
                    prompt?: string;
                    /** @enum {string} */
                    response_format?: "json" | "text" | "verbose_json" | "srt" | "vtt";
                    temperature?: string;
                };
            };
        };
        responses: {
            /** @description OpenAiTranscription */
            200: {
                headers: {
                    /** @description What the call was charged, in USD */
                    "X-Charge-Usd"?: string;
                    /** @description The id of the call's usage record; a stream leaves it when it has ended */
                    "X-Usage-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAiTranscription"] | string;
                };
            };
        };
    };
    "transcriptionModels.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ToolModelList */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolModelList"];
                };
            };
        };
    };
    "notifications.notifications": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["NotificationPage"];
                    };
                };
            };
        };
    };
    "notifications.readNotifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["NotificationsRead"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["NotificationsMarked"];
                    };
                };
            };
        };
    };
    "notifications.readNotification": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Notification"];
                    };
                };
            };
        };
    };
    "contact.clientToken": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "service_client_id": "{service_client_id}"
                 *     }
                 */
                "application/json": {
                    service_client_id?: string;
                };
            };
        };
        responses: {
            /** @description ClientToken */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientToken"];
                };
            };
        };
    };
    "contact.contact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada",
                 *       "email": "ada@example.com",
                 *       "inquiryType": "general",
                 *       "message": "How do I invite my team?"
                 *     }
                 */
                "application/json": components["schemas"]["ContactMessage"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            /** @enum {boolean} */
                            received: true;
                        };
                    };
                };
            };
        };
    };
    "operatorSession.open": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "{operator_code}"
                 *     }
                 */
                "application/json": components["schemas"]["OperatorSessionRequest"];
            };
        };
        responses: {
            /** @description OperatorSessionToken */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorSessionToken"];
                };
            };
        };
    };
    "operatorSession.close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "operator.me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorMe"];
                    };
                };
            };
        };
    };
    "operator.sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorSessions"];
                    };
                };
            };
        };
    };
    "operator.endSession": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorSessionEnded"];
                    };
                };
            };
        };
    };
    "operator.audit": {
        parameters: {
            query?: {
                /** @description How many records are given: 50, at most 200 */
                limit?: string;
                /** @description `next` of the page before: goes on behind it */
                before?: string;
                /** @description Only what this operator did */
                operator?: string;
                /** @description Only what was done to this tenant */
                tenant_id?: string;
                /** @description Only what was done to this person */
                account_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            records: components["schemas"]["AuditEntry"][];
                            next: string | null;
                        };
                    };
                };
            };
        };
    };
    "operator.search": {
        parameters: {
            query: {
                /**
                 * @description An id, a reference, or the beginning of a name, an address or a key; never a whole key
                 * @example ada@example.com
                 */
                q: string;
                /** @description How many records are given: 50, at most 200 */
                limit?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorFound"];
                    };
                };
            };
        };
    };
    "operator.tenants": {
        parameters: {
            query?: {
                /** @description How many records are given: 50, at most 200 */
                limit?: string;
                /** @description `next` of the page before: goes on behind it */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            records: components["schemas"]["OperatorTenantLine"][];
                            next: string | null;
                        };
                    };
                };
            };
        };
    };
    "operator.tenant": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorTenant"];
                    };
                };
            };
        };
    };
    "operator.ledger": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
                /** @description Only entries of these sources, with commas between them; or `call`: only charges, which have none */
                source?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["LedgerPage"];
                    };
                };
            };
        };
    };
    "operator.usage": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1 */
                page?: string;
                /** @description How many records a page has: 50, at most 200 */
                per_page?: string;
                /** @description RFC 3339; the first instant inside */
                start_date?: string;
                /** @description RFC 3339; the first instant behind the window. A bare date includes its day */
                end_date?: string;
                /** @description timestamp, unless said otherwise */
                sort?: "timestamp" | "cost" | "total_tokens" | "latency";
                /** @description desc, unless said otherwise */
                direction?: "asc" | "desc";
                /** @description Only calls of this model. Filtered records are sorted by time */
                model?: string;
                /** @description Only calls that this provider served */
                provider?: string;
                /** @description Only calls of this endpoint */
                endpoint?: string;
                /** @description Only calls of this account */
                account_id?: string;
                /** @description Only calls with a key of this application; empty: calls by user token */
                application_id?: string;
                /** @description Only calls that this tenant paid */
                billing_source_tenant_id?: string;
                /** @description Only calls of this type */
                usage_type?: "inference" | "tool";
                /** @description Only calls that succeeded, or that failed */
                success?: "true" | "false";
                /** @description `next_cursor` of the page before: goes on where that one ended */
                cursor?: string;
            };
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["UsageRecordPage"];
                    };
                };
            };
        };
    };
    "operator.explain": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                usage_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["Explanation"];
                    };
                };
            };
        };
    };
    "operator.person": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorPerson"];
                    };
                };
            };
        };
    };
    "operator.grant": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount": 5,
                 *       "reference": "case 4711",
                 *       "reason": "for the outage of Monday"
                 *     }
                 */
                "application/json": components["schemas"]["OperatorCredit"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorCredited"];
                    };
                };
            };
        };
    };
    "operator.purchase": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount": 100,
                 *       "reference": "invoice 2026-17"
                 *     }
                 */
                "application/json": components["schemas"]["OperatorCredit"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorCredited"];
                    };
                };
            };
        };
    };
    "operator.suspendTenant": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "a card that was stolen"
                 *     }
                 */
                "application/json": components["schemas"]["OperatorReason"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorTenantChanged"];
                    };
                };
            };
        };
    };
    "operator.activateTenant": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["OperatorReason"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorTenantChanged"];
                    };
                };
            };
        };
    };
    "operator.suspendPerson": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                account_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "an account that was taken over"
                 *     }
                 */
                "application/json": components["schemas"]["OperatorReason"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorPersonChanged"];
                    };
                };
            };
        };
    };
    "operator.activatePerson": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                account_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["OperatorReason"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorPersonChanged"];
                    };
                };
            };
        };
    };
    "operator.revokeKey": {
        parameters: {
            query?: {
                /** @description 1 to 200 characters on one line */
                reason?: string;
            };
            header?: never;
            path: {
                application_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorKeyRevoked"];
                    };
                };
            };
        };
    };
    "operator.endSignIns": {
        parameters: {
            query?: {
                /** @description 1 to 200 characters on one line */
                reason?: string;
            };
            header?: never;
            path: {
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorSignInsEnded"];
                    };
                };
            };
        };
    };
    "operator.upstreams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorUpstreams"];
                    };
                };
            };
        };
    };
    "operator.costs": {
        parameters: {
            query?: {
                /** @description The first day (UTC); six days before the last unless it is given */
                from?: string;
                /** @description The last day (UTC); today unless it is given */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorCosts"];
                    };
                };
            };
        };
    };
    "operator.drift": {
        parameters: {
            query?: {
                /** @description Whose invoice it is: only what this provider served is compared */
                provider?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example date,model,cost
                 *     2026-03-01,sandbox-small,0.25
                 */
                "text/csv": string;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorDrift"];
                    };
                };
            };
        };
    };
    "operator.flight": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorFlight"];
                    };
                };
            };
        };
    };
    "operator.reservations": {
        parameters: {
            query?: {
                /** @description How many records are given: 50, at most 200 */
                limit?: string;
                /** @description `next` of the page before: goes on behind it */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: {
                            records: components["schemas"]["OperatorReservation"][];
                            next: string | null;
                        };
                    };
                };
            };
        };
    };
    "operator.owed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorOwed"];
                    };
                };
            };
        };
    };
    "operator.loops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorWork"];
                    };
                };
            };
        };
    };
    "operator.verifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorVerifications"];
                    };
                };
            };
        };
    };
    "operator.verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "whole": false
                 *     }
                 */
                "application/json": components["schemas"]["OperatorNewVerification"];
            };
        };
        responses: {
            /** @description Success */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorVerifications"];
                    };
                };
            };
        };
    };
    "operator.events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    "operator.invariants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        msg: string;
                        result: components["schemas"]["OperatorInvariants"];
                    };
                };
            };
        };
    };
    "ops.health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "ok";
                    };
                };
            };
        };
    };
    "ops.ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "ok";
                        node?: {
                            name: string;
                            leads: boolean;
                            leader: string | null;
                            lease_seconds: number;
                            renewed_seconds_ago: number;
                            nodes: number;
                        };
                    };
                };
            };
        };
    };
    "ops.metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a string */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    "sandbox.info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description SandboxInfo */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxInfo"];
                };
            };
        };
    };
}
