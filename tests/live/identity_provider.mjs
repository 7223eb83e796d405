// A certified authorization server (the npm package oidc-provider) on loopback: PORT RESOURCE CALLBACK.
import Provider from 'oidc-provider';

const [port, resource, callback] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'gate',
      client_secret: 'its-secret',
      redirect_uris: [callback],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, asked) => {
        if (asked !== resource) throw new Error('not here');
        return { scope: 'read', audience: resource, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } };
      },
    },
  },
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  scopes: ['openid', 'email', 'offline_access', 'read'],
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true }),
  }),
  issueRefreshToken: async () => true,
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listens'));
